import os
import subprocess
import sys
import time

from upheld.supervisor.costs import Look, cost, look, peak_bytes

BUSY_S = 0.4
BUSY = f"import time; end = time.process_time() + {BUSY_S}\nwhile time.process_time() < end: pass"


def test_shares_are_told_apart() -> None:
    """The design's is what is left of the tree; a node that was restarted begins anew."""
    before = Look(harness_s=1.0, tree_s=10.0, brokers_s={7: 4.0})
    after = Look(harness_s=1.5, tree_s=13.0, brokers_s={7: 4.5, 8: 0.25})

    found = cost(before, after)

    assert (found.harness_cpu_s, found.broker_cpu_s, found.design_cpu_s) == (0.5, 0.75, 1.75)


def test_a_broker_elsewhere_is_unknown() -> None:
    """The broker of a container or of another cluster is not in the tree.

    A container is the engine's child, and a cluster of others is far.
    """
    found = cost(Look(0, 0, {}), Look(1, 3, {}))

    assert (found.broker_cpu_s, found.design_cpu_s) == (None, 2)


def test_what_a_child_took_is_the_designs() -> None:
    """A process that lived and ended between two looks has been charged to the tree."""
    before = look([])
    subprocess.run([sys.executable, "-c", BUSY], check=True)

    found = cost(before, look([]))

    assert BUSY_S * 0.9 <= found.design_cpu_s <= BUSY_S * 2 + 0.3


def test_what_the_harness_took_is_its_own() -> None:
    """Its own loop is charged to nobody else."""
    before = look([])
    end = time.process_time() + BUSY_S
    while time.process_time() < end:
        pass

    found = cost(before, look([]))

    assert found.harness_cpu_s >= BUSY_S * 0.9
    assert found.design_cpu_s < BUSY_S / 2


def test_a_child_that_is_killed_is_not_lost() -> None:
    """SIGKILL takes a process, and not what it took."""
    before = look([])
    child = subprocess.Popen([sys.executable, "-c", BUSY + "\ntime.sleep(60)"])
    deadline = time.monotonic() + 20
    while look([child.pid]).brokers_s[child.pid] < BUSY_S and time.monotonic() < deadline:
        time.sleep(0.02)
    child.kill()
    child.wait()

    assert cost(before, look([])).design_cpu_s >= BUSY_S * 0.9


def test_a_peak_stays_when_the_memory_is_gone() -> None:
    """Memory that was given back counts.

    A process that has ended counts for nothing.
    """
    program = "x = bytearray(64 << 20); del x; print('.', flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout
    child.stdout.readline()

    assert 64 << 20 < peak_bytes([child.pid]) < 256 << 20

    child.communicate(b"\n")
    assert peak_bytes([child.pid]) == 0
    assert peak_bytes([os.getpid(), child.pid]) > 0


def test_no_such_process() -> None:
    """A process that nobody knows took nothing."""
    nobody = 2**22 + 1  # above the kernel's greatest

    assert look([nobody]).brokers_s == {nobody: 0.0}
