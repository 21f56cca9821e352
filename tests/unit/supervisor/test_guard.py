"""No process of a design leaves its guard, whatever it does to its family."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from children import child, scope, started
from miniatures import Run, manifest, until

from upheld.errors import MachineProblem
from upheld.supervisor import guarded
from upheld.supervisor.environment import prepare
from upheld.supervisor.guarded import Guarded
from upheld.supervisor.host import cpu_s
from upheld.supervisor.instance import Instance
from upheld.supervisor.reaper import RunScope
from upheld.supervisor.session import Session
from upheld.verdicts import AdapterBreach

DAEMON = """
    import os, sys, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", SLEEPS], {})
        os._exit(0)
    os.wait()
"""
SLEEPS = "import os,time;print(os.getpid(),flush=True);time.sleep(600)"
# How a design tries to leave its family; each prints the process id of the one that stays.
ESCAPES = {
    "daemon": DAEMON,
    "daemon-and-exit": DAEMON + "    os._exit(0)\n",
    "daemon-without-files": """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(1, b"%d\\n" % os.getpid())
                os.closerange(0, 64)
                time.sleep(600)
            os._exit(0)
        os.wait()
    """,
    "deaf": """
        import os, signal, time
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        print(os.getpid(), flush=True)
        time.sleep(600)
    """,
    "many": """
        import os, time
        for _ in range(100):
            if os.fork() == 0:
                os.setsid()
                time.sleep(600)
        print(os.getpid(), flush=True)
        time.sleep(600)
    """,
    "after-its-parent": """
        import os, time
        for _ in range(20):  # each child is the only one that is left, and forks again
            if os.fork():
                os._exit(0)
            os.setsid()
        print(os.getpid(), flush=True)
        time.sleep(600)
    """,
    "another-name": """
        import ctypes, os, time
        ctypes.CDLL(None).prctl(15, b"upheld) Z 1 1", 0, 0, 0)
        if os.fork():
            os._exit(0)
        os.setsid()
        print(os.getpid(), flush=True)
        time.sleep(600)
    """,
    "stopped": """
        import os, signal
        if os.fork():
            os._exit(0)
        os.setsid()
        print(os.getpid(), flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
    """,
    "subreaper": """
        import ctypes, os, time
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        if os.fork() == 0:
            if os.fork() == 0:
                print(os.getpid(), flush=True)
                time.sleep(600)
            os._exit(0)
        time.sleep(600)
    """,
    "orphan-of-a-killed-guard": """
        import os, signal, time
        os.kill(os.getppid(), signal.SIGKILL)
        if os.fork():
            os._exit(0)
        os.setsid()
        os.execve("/bin/sh", ["sh", "-c", "echo $$; exec sleep 600"], {})
    """,
}
HARNESS = """
    import os, sys
    from pathlib import Path
    from upheld.supervisor.guarded import Child
    from upheld.supervisor.reaper import RunScope
    run = RunScope()
    script = sys.argv[1]
    process = run.spawn(Child([sys.executable, "-c", script], Path("/"), dict(os.environ), 2))
    print(process.stdout.readline().decode(), process.guard, flush=True)
    sys.stdin.read()
"""


def script(text: str) -> str:
    """Return a script that sleeps on in place of its daemon."""
    return f"SLEEPS = {SLEEPS!r}\n" + textwrap.dedent(text)


@contextmanager
def escaped(how: str) -> Iterator[tuple[Guarded, int]]:
    """Start a design that leaves its family, and yield it with the one that stays."""
    with started(sys.executable, "-c", script(ESCAPES[how])) as process:
        assert process.stdout
        yield process, int(process.stdout.readline())


def lives(pid: int) -> bool:
    """Return whether a process runs or is stopped."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def children_of(pid: int) -> set[int]:
    """Return the processes right below another one."""
    return {each.pid for each in psutil.Process(pid).children()}


@pytest.mark.parametrize("how", ESCAPES)
def test_a_kill_takes_each_descendant(how: str) -> None:
    """It is listed, paused and killed, and named as evidence."""
    with escaped(how) as (process, pid):
        session = Session.of(process, "nobody else's")
        assert pid in session.pids()
        assert pid in session.pause()
        assert psutil.Process(pid).status() == psutil.STATUS_STOPPED

        assert pid in session.kill()

        until(lambda: not lives(pid))
        assert session.pids() == []


@pytest.mark.parametrize("how", ESCAPES)
def test_the_end_of_a_harness_takes_each_descendant(how: str) -> None:
    """The reaper ends all, also where the harness is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HARNESS), script(ESCAPES[how])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as harness:
        assert harness.stdout
        pid, guard = (int(harness.stdout.readline()), int(harness.stdout.readline()))
        assert lives(pid)
        harness.kill()

    until(lambda: not lives(pid))
    until(lambda: not lives(guard))


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        ("raise SystemExit(0)", 0),
        ("raise SystemExit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        (
            "import os, signal; os.kill(os.getppid(), signal.SIGSTOP); raise SystemExit(3)",
            3,
        ),
        ("import os, signal; os.kill(os.getppid(), signal.SIGTERM); raise SystemExit(4)", 4),
    ],
)
def test_the_exit_code_is_the_processs_own(ends: str, code: int) -> None:
    """A guard tells it, also one that the design has stopped or asked to end."""
    with started(sys.executable, "-c", ends) as process:
        assert process.wait(10) == code
        assert process.poll() == code
        assert not process.is_guard_lost


def test_a_process_that_runs_has_no_exit_code() -> None:
    """A wait for it ends in time."""
    with started("sleep", "600") as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)


def test_a_design_that_kills_its_guard_is_to_blame(tmp_path: Path) -> None:
    """The breach says so, and its processes are ended all the same."""
    design = manifest(
        "",
        command=[
            sys.executable,
            "-c",
            "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(600)",
        ],
    )
    instance = Instance(design, Run(), tmp_path)
    try:
        with pytest.raises(AdapterBreach, match="ended its own parent, the guard"):
            instance.greet()
        pids = instance.pids()
        assert pids
    finally:
        taken = instance.kill()

    assert set(pids) <= set(taken)
    assert not any(map(lives, pids))


def test_what_prepare_leaves_ends_with_it(tmp_path: Path) -> None:
    """A daemon of `prepare` is no exception."""
    leaves = """
        import os, time
        reads, writes = os.pipe()
        if os.fork() == 0:
            os.setsid()
            print(os.getpid(), flush=True)
            os.write(writes, b"x")
            time.sleep(600)
        os.read(reads, 1)
    """
    prepare(manifest("", prepare=[sys.executable, "-c", script(leaves)]), Run(), tmp_path)

    pid = int((tmp_path / "miniature-prepare.txt").read_text())
    assert not lives(pid)


def test_orphans_count_as_ours() -> None:
    """Their guard waits for them, so their CPU-seconds stay in the run's tree."""
    burns = """
        import os, time
        if os.fork():
            os._exit(0)
        while time.process_time() < 0.5:
            pass
    """
    before = cpu_s().own_s
    with started(sys.executable, "-c", textwrap.dedent(burns)) as process:
        process.wait(10)
        until(lambda: not lives(process.guard))

    assert cpu_s().own_s - before > 0.4


@pytest.mark.parametrize(
    ("command", "environment", "error"),
    [
        (["/nowhere/at-all"], {}, FileNotFoundError),
        (["/"], {}, PermissionError),
        (["true"], {"A=B": "x"}, OSError),
        (["true"], {"A": "x\0y"}, OSError),
        (["true", "x\0y"], {}, OSError),
        (["true", "x" * (1 << 21)], {}, OSError),
    ],
    ids=["missing", "folder", "odd-name", "nul-in-value", "nul-in-argument", "too-long"],
)
def test_what_cannot_be_run_is_refused(
    command: list[str], environment: dict[str, str], error: type[OSError]
) -> None:
    """The reason is the system's own, and the next process starts."""
    odd = child(command)
    odd.environment.update(environment)

    with pytest.raises(error):
        scope().spawn(odd)
    with started("true") as process:
        assert process.wait(10) == 0


def test_a_process_inherits_what_it_is_given_alone() -> None:
    """The guard's socket, the reaper's lock and other pipes are not among its files."""
    with started("ls", "/proc/self/fd") as process:
        assert process.stdout
        opened = process.stdout.read().split()

    assert opened == [b"0", b"1", b"2", b"3"]  # the last one lists them


def test_without_a_reaper_nothing_is_started() -> None:
    """A run whose reaper was killed says so, since nobody would end its processes."""
    with RunScope() as run:
        os.kill(run._reaper.pid, signal.SIGKILL)
        run._reaper.wait()

        with pytest.raises(MachineProblem, match=r"reaper|was killed"):
            run.spawn(child(["true"]))


def test_a_kill_spares_the_guard_of_a_process_that_is_being_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guard that has not answered yet is no orphan of another design."""
    asked = threading.Event()
    send = guarded.Request.send

    def send_later(request: guarded.Request, *arguments: Any) -> None:
        assert asked.wait(10)
        send(request, *arguments)

    with started("true") as ended:
        ended.wait(10)
        until(lambda: not lives(ended.guard))
        before = children_of(ended.family.reaper)
        monkeypatch.setattr(guarded.Request, "send", send_later)
        with ThreadPoolExecutor(2) as threads:
            starting = threads.submit(scope().spawn, child(["sleep", "600"]))
            until(lambda: children_of(ended.family.reaper) - before)
            killing = threads.submit(Session.of(ended, "nobody else's").kill)
            with contextlib.suppress(TimeoutError):  # a kill may wait until the guard is known
                killing.result(0.5)
            asked.set()
            process = starting.result(10)
            taken = killing.result(10)

    assert process.guard not in taken
    assert process.poll() is None
    process.kill()
    process.wait(10)
    process.close()


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (TimeoutError(), "does not answer within 30 s"),
        (ConnectionResetError(), "was killed"),
        (b"", "was killed"),
    ],
    ids=["late", "reset", "ended"],
)
def test_a_guard_without_an_answer_says_why(
    answers: OSError | bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An overloaded machine is not taken for a guard that was killed."""

    def answer(*_: object) -> bytes:
        if isinstance(answers, OSError):
            raise answers
        return answers

    monkeypatch.setattr(guarded, "_answer", answer)

    with pytest.raises(MachineProblem, match=reason):
        scope().spawn(child(["true"]))


def test_a_guard_ends_with_its_last_process() -> None:
    """Nothing of a run that goes on is left of an instance that has ended."""
    with started("true") as process:
        process.wait(10)
        until(lambda: not lives(process.guard))
