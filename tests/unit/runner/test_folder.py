"""One run at a time writes to an output folder, and over no foreign file."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from upheld.cli import machine
from upheld.errors import MachineProblem, UsageProblem
from upheld.report import Writer
from upheld.report.folder import LOCK, locked

HOLDER = """
import sys
from pathlib import Path
from upheld.report.folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_second_run_is_refused_with_the_process_of_the_first(tmp_path: Path) -> None:
    """When the first has ended, or was killed, the folder is free; no lock is left."""
    for kills in (False, True):
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, tmp_path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with holder:
            assert holder.stdout
            assert holder.stdout.readline() == "held\n"
            sentence = f"in use by the run of process {holder.pid}; name another folder with"
            with pytest.raises(UsageProblem, match=sentence), locked(tmp_path):
                pass
            if kills:
                holder.kill()

        with locked(tmp_path):
            assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"
        assert list(tmp_path.iterdir()) == []


def test_many_at_once_never_share_a_folder(tmp_path: Path) -> None:
    """The lock is removed and made again, and yet two never hold it."""
    inside = []
    most = []
    refused = []

    def tries() -> None:
        for _ in range(100):
            try:
                with locked(tmp_path):
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
            except UsageProblem:
                refused.append(1)

    threads = [threading.Thread(target=tries) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(most) == {1}
    assert len(most) + len(refused) == 600


def looks(path: Path) -> tuple[int, int, int, int]:
    """Return what a change of a file would change, which its access does not."""
    found = path.lstat()
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns


def _file(text: str) -> Callable[[Path], object]:
    return lambda place: place.write_text(text)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("report.jsonl", _file("my own notes\n")),
        ("report.jsonl", lambda place: place.symlink_to("elsewhere")),
        ("report.jsonl", os.mkfifo),
        ("report.jsonl", Path.mkdir),
        ("junit.xml", _file("<project/>")),
        ("sweep.jsonl", _file("none of yours")),
        ("history", lambda place: place.symlink_to("/tmp")),
        ("logs", _file("a file")),
        ("lane-1", lambda place: place.symlink_to("/tmp")),
    ],
)
def test_what_no_run_wrote_is_not_written_over(
    tmp_path: Path, name: str, make: Callable[[Path], object]
) -> None:
    """A foreign file, a link, a pipe or a folder in a file's place is named."""
    make(tmp_path / name)
    before = looks(tmp_path / name)

    with pytest.raises(UsageProblem, match=name), locked(tmp_path):
        pass

    assert looks(tmp_path / name) == before


def test_files_of_an_older_run_and_others_are_no_hindrance(tmp_path: Path) -> None:
    """A folder may be used again, and may hold what a run never writes."""
    (tmp_path / "report.jsonl").write_text('{"kind":"row"}\n')
    (tmp_path / "junit.xml").write_text("<testsuites/>")
    (tmp_path / "history").mkdir()
    (tmp_path / "notes.txt").write_text("mine")

    with locked(tmp_path):
        Writer(tmp_path).close()

    assert (tmp_path / "report.jsonl").read_text() == ""
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_lock_that_is_a_link_leads_nowhere(tmp_path: Path) -> None:
    """No file elsewhere gets the number of a process."""
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / LOCK).symlink_to(other)

    with pytest.raises(MachineProblem, match="cannot be written"), machine.own_folder(tmp_path):
        pass

    assert other.read_text() == "mine"


def test_a_report_that_is_a_link_or_a_pipe_is_not_opened(tmp_path: Path) -> None:
    """The writer waits for no reader of a pipe, and follows no link."""
    (tmp_path / "report.jsonl").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match=r"report\.jsonl"):
        Writer(tmp_path)
    assert not (tmp_path / "other").exists()
    (tmp_path / "report.jsonl").unlink()
    os.mkfifo(tmp_path / "report.jsonl")
    with pytest.raises(OSError, match=r"report\.jsonl"):
        Writer(tmp_path)


def test_latest_always_leads_to_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that begin together, and a link that was left half made, do no harm.

    A folder of the user that has this name stays.
    """
    monkeypatch.chdir(tmp_path)
    folders = [machine.out_folder() for _ in range(8)]
    (tmp_path / "upheld-out" / f".latest-{folders[0].name}").symlink_to("nowhere")
    threads = [
        threading.Thread(target=machine.begin_report, args=(None, folder)) for folder in folders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    latest = tmp_path / "upheld-out" / "latest"
    assert latest.resolve() in folders
    assert list(latest.parent.glob(".latest*")) == []
    latest.unlink()
    latest.mkdir()
    machine.begin_report(None, folders[0])
    assert not latest.is_symlink()
