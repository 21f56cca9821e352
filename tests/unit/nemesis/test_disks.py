"""A file that the next start reads is torn; if it was not read, nothing is shown."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from upheld.history import History
from upheld.history.events import Mark
from upheld.history.marks import Happening
from upheld.nemesis import disks
from upheld.supervisor.folders import Folder
from upheld.verdicts import Inconclusive, MarkMissed

CONTENT = "0123456789"


class Torn:
    """A trial of a design that keeps its states, and writes its settings last."""

    def __init__(
        self,
        folder: Path,
        reads: Callable[[Path], object],
        *,
        stops: bool = False,
        log: Sequence[str] | None = None,
    ):
        self.folder = folder
        self.history = History()
        self.application = None if log is None else "without an adapter"
        lines = SimpleNamespace(last_lines=lambda: log)
        self.instance = SimpleNamespace(is_over=True, failed=None, log=lines)
        self.starts = 0
        self.reads = reads
        self.stops = stops
        self.known: dict[tuple[str, str], Any] = {}

    def attempt(self) -> list[Happening]:
        """Tear a file and start; return the marks."""
        self.history = History()
        self.starts = 0
        disk = Folder(self.folder, f"disk-{len(list(self.folder.iterdir()))}")
        disk.make()
        for name in ("state-7", "settings"):
            (disk.path / name).write_text(CONTENT)
        application: Any = SimpleNamespace(
            disks=disk,
            kept=Folder(self.folder, f"{disk.name}-kept"),
            program=SimpleNamespace(name="ledger"),
            running={"a": self.instance},
        )
        disks.keep(application)
        trial: Any = SimpleNamespace(
            manifest=SimpleNamespace(name="design", local_state=True, application=self.application),
            history=self.history,
            mark=lambda happening, **evidence: self.history.add(
                Mark(at_ms=1, fault="", happening=happening, evidence=evidence)
            ),
            rig=SimpleNamespace(known_reads=self.known, progress_s=1),
            recorder=SimpleNamespace(wait=lambda _, condition: condition()),
            monitor=SimpleNamespace(tick=lambda _: None, is_drained=lambda _: True),
            instances=SimpleNamespace(start=self.start, let_go=lambda *_: None),
        )
        disks.tear(trial, application)
        disks.start_torn(trial, application)
        return [mark.happening for mark in self.history.of(Mark) if mark.happening]

    def start(self, application: Any, **_: object) -> Any:
        """Start, and stop at the first half of a file if the design does that."""
        self.starts += 1
        self.reads(application.disks.path)
        return None if self.stops and self.starts == 1 else self.instance

    @property
    def file(self) -> str:
        """The file that was torn."""
        return str(next(mark for mark in self.history.of(Mark)).evidence["file"])


def states(disk: Path) -> str:
    """Read the states alone."""
    return (disk / "state-7").read_text()


def everything(disk: Path) -> list[str]:
    """Read all files."""
    return [file.read_text() for file in disk.iterdir()]


def nothing(_: Path) -> None:
    """Read no file."""


def test_the_newest(tmp_path: Path) -> None:
    """Of all files that are read the newest one is torn, and read in half."""
    torn = Torn(tmp_path, everything)

    assert torn.attempt() == [Happening.FILE_TORN, Happening.TORN_FILE_READ]
    assert torn.file == "settings"


def test_the_next_attempt_knows(tmp_path: Path) -> None:
    """The first start shows which file is read, and the next attempt tears that one."""
    torn = Torn(tmp_path, states)

    with pytest.raises(MarkMissed, match="design did not read settings, which was torn"):
        torn.attempt()

    assert torn.attempt() == [Happening.FILE_TORN, Happening.TORN_FILE_READ]
    assert torn.file == "state-7"


def test_nothing_is_read(tmp_path: Path) -> None:
    """A design that reads no file would not read the next one."""
    with pytest.raises(Inconclusive, match="nor any other file") as ended:
        Torn(tmp_path, nothing).attempt()

    assert not isinstance(ended.value, MarkMissed)


def test_a_loud_stop(tmp_path: Path) -> None:
    """A design that stops is judged by its words, whether or not the read was seen."""
    torn = Torn(tmp_path, nothing, stops=True)

    assert torn.attempt() == [Happening.FILE_TORN, Happening.DISK_SET_BACK]
    assert torn.starts == 2


@pytest.mark.parametrize(
    ("log", "marks"),
    [
        (["Corruption: The file /d/settings is cut", "close", "closed"], ["torn-file-named"]),
        (["Corruption: a file is cut", "close", "closed"], []),
    ],
)
def test_the_log_of_an_application(tmp_path: Path, log: list[str], marks: list[str]) -> None:
    """Its last words may be of what came after the error, so each line counts."""
    torn = Torn(tmp_path, nothing, stops=True, log=log)

    assert torn.attempt() == [Happening.FILE_TORN, *marks, Happening.DISK_SET_BACK]


@pytest.mark.parametrize("now", ["offset 1250", "offset 1000"])
def test_a_checkpoint_of_the_same_size_has_changed(tmp_path: Path, now: str) -> None:
    """A few digits of it are other ones; if none is, nothing can be set back."""
    disk = Folder(tmp_path, "disk")
    disk.make()
    (disk.path / "checkpoint").write_text("offset 1000")
    application: Any = SimpleNamespace(disks=disk, kept=Folder(tmp_path, "kept"))
    marks: list[dict[str, Any]] = []
    trial: Any = SimpleNamespace(
        manifest=SimpleNamespace(name="design", local_state=True),
        mark=lambda _, **evidence: marks.append(evidence),
    )
    disks.keep(application)
    (disk.path / "checkpoint").write_text(now)

    if now == "offset 1000":
        with pytest.raises(MarkMissed, match="nothing changed on its disks"):
            disks.set_back(trial, application)
    else:
        disks.set_back(trial, application)
        assert [each["changed"] for each in marks] == [1]
        assert (disk.path / "checkpoint").read_text() == "offset 1000"
