import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import docker
import pytest

from upheld.supervisor import reaper
from upheld.supervisor.reaper import RunScope, members, sweep

DEADLINE_S = 20.0
ORPHAN = (  # leaves its session and its parent, as a daemon does
    "import os, sys, time\n"
    "if os.fork(): sys.exit()\n"
    "os.setsid()\n"
    "if os.fork(): sys.exit()\n"
    "print(os.getpid(), flush=True)\n"
    "time.sleep(600)\n"
)
HARNESS = (  # starts a run and an orphan, says who it is, and waits to be killed
    "import os, subprocess, sys, time\n"
    "from upheld.supervisor.reaper import RunScope\n"
    "run = RunScope()\n"
    "subprocess.check_call([sys.executable, '-c', sys.argv[1]], env=os.environ | run.environment)\n"
    "print(run.run_id, run._reaper.pid, flush=True)\n"
    "time.sleep(600)\n"
)


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a system temporary folder of this test's own.

    So no other run is seen or swept.
    """
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def ends(pid: int) -> bool:
    """Return whether a process, a stranger to us, ends before the deadline."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], DEADLINE_S)[0])
    finally:
        os.close(descriptor)


def orphan_of(run: RunScope) -> int:
    """Return the pid of a process in no group, session or family of ours."""
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN],
        env=os.environ | run.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        return int(parent.stdout.readline())


def harness() -> tuple[subprocess.Popen[str], str, int]:
    """Yield a harness with an orphan: its process, run id and reaper."""
    detached = ORPHAN.replace("print(os.getpid(), flush=True)", "os.close(1)")
    process = subprocess.Popen(
        [sys.executable, "-c", HARNESS, detached],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        run_id, reaper = process.stdout.readline().split()
    return process, run_id, int(reaper)


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_the_end_of_a_run_takes_orphans_and_the_scratch_folder() -> None:
    """The tag in the environment finds a process that left its session and its parent."""
    with RunScope() as run:
        orphan = orphan_of(run)
        (run.scratch / "data").write_text("state")
        assert is_alive(orphan)

    assert not is_alive(orphan)
    assert not run.scratch.exists()


def test_a_stopped_process_is_taken_too() -> None:
    """A paused zombie of a scenario does not outlive it."""
    with RunScope() as run:
        orphan = orphan_of(run)
        os.kill(orphan, signal.SIGSTOP)

    assert not is_alive(orphan)


def test_a_recorded_session_is_taken_without_its_tag() -> None:
    """A program may write over its environment; its session is known all the same."""
    with RunScope() as run:
        process = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
        )
        run.session(process.pid)

    with process:
        assert process.wait(DEADLINE_S) == -signal.SIGKILL


def test_processes_of_another_run_are_left_alone() -> None:
    """Two runs on one machine do not know each other."""
    with RunScope() as mine, RunScope() as other:
        orphan = orphan_of(other)
        mine.close()

        assert is_alive(orphan)
        assert other.scratch.exists()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_harness_that_dies_is_cleaned_up_after(
    how: signal.Signals, temporary_folder: Path
) -> None:
    """The reaper stands outside the foreground group and works.

    The whole group is hit, as by Ctrl-C.
    """
    process, run_id, reaper = harness()
    assert members(run_id, [])

    os.killpg(process.pid, how)
    process.wait(DEADLINE_S)

    assert ends(reaper)
    assert members(run_id, []) == []
    assert list(temporary_folder.iterdir()) == []


def test_the_next_run_sweeps_what_a_dead_reaper_left(temporary_folder: Path) -> None:
    """When harness and reaper are both killed, their lock is free.

    The next run finishes the work.
    """
    process, run_id, reaper = harness()
    os.kill(reaper, signal.SIGKILL)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(DEADLINE_S)
    assert ends(reaper)
    assert members(run_id, [])

    swept = sweep()

    assert [run_id] == swept
    assert members(run_id, []) == []
    assert list(temporary_folder.iterdir()) == []


def test_a_run_whose_reaper_was_killed_still_ends_clean() -> None:
    """Closing does what the reaper no longer can."""
    with RunScope() as run:
        orphan = orphan_of(run)
        run._reaper.kill()
        run._reaper.wait()

    assert not is_alive(orphan)
    assert not run.scratch.exists()


def test_a_live_run_is_not_swept() -> None:
    """Two runs beside each other are no leftovers."""
    with RunScope() as run:
        assert sweep() == []
        assert run.scratch.exists()


def test_a_container_that_the_engine_was_still_making_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its starter was killed meanwhile, and nobody else would end it."""
    found = iter([["first"], ["late"]])
    removed: list[str] = []

    def listed(*, filters: dict[str, str], **how: bool) -> list[object]:
        assert how == {"all": True, "ignore_removed": True}
        assert filters == {"label": "upheld.run=0123456789ab"}
        return [SimpleNamespace(id=each) for each in next(found)]

    def remove(container: str, *, v: bool, force: bool) -> None:
        assert v
        assert force
        removed.append(container)

    engine = SimpleNamespace(
        containers=SimpleNamespace(list=listed), api=SimpleNamespace(remove_container=remove)
    )
    monkeypatch.setattr(docker, "from_env", lambda **_: engine)
    monkeypatch.setattr(reaper, "_MADE_S", 0)

    reaper._remove_containers("0123456789ab", [])

    assert removed == ["first", "late"]
