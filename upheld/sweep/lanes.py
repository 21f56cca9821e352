"""Crash points side by side.

Each lane is a sweep of a share of them, on a broker of its own. A lane is the same command with a
folder of its own. The record that it finds there names its crash points, so that it begins as a
sweep that goes on. Its results are read from that record and written into that of the whole sweep,
one by one. A sweep that is interrupted loses none of them.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upheld.errors import MachineProblem
from upheld.supervisor.reaper import RunScope
from upheld.sweep.journal import Journal
from upheld.sweep.points import CrashPoint, Result
from upheld.sweep.report import show
from upheld.ui.progress import Progress
from upheld.ui.timeleft import Mean

LOOK_S: Final = 0.2
LOG: Final = "lane.log"  # what a lane says beside its results


@dataclass
class Lane:
    """One lane: its crash points, and the process that meets them."""

    number: int
    journal: Journal
    process: "subprocess.Popen[bytes]"
    taken: int = 0  # results that the whole sweep has

    @property
    def folder(self) -> Path:
        """The folder of its own."""
        return self.journal.path.parent

    @property
    def under_way(self) -> CrashPoint | None:
        """The crash point that it meets now; None after the last one."""
        return next(iter(self.journal.points[self.taken :]), None)

    def results(self) -> Iterator[Result]:
        """Go through the results that the whole sweep does not have yet."""
        *lines, _ = self.journal.path.read_bytes().split(b"\n")
        for line in lines[1 + self.taken :]:
            result = Result.model_validate_json(line)
            result.history = f"{self.folder.name}/{result.history}"
            self.taken += 1
            yield result


@dataclass(frozen=True)
class SideBySide:
    """Lanes of a sweep.

    Attributes:
        command: The command of the whole sweep, to which each lane adds what is its own.
        count: How many lanes there are at most.
        run: The run, whose end is that of its lanes.
    """

    command: tuple[str, ...]
    count: int
    run: RunScope

    def meet(self, journal: Journal, due: list[CrashPoint], progress: Progress) -> None:
        """Meet crash points, and write down and show each result.

        Raises:
            MachineProblem: A lane ended before it had met its crash points.
        """
        mean = Mean(len(due))
        progress.begin(len(due), mean.seconds)
        lanes: list[Lane] = []
        try:
            for number in range(1, min(self.count, len(due)) + 1):
                lanes.append(self._begun(number, journal, due[number - 1 :: self.count]))
                progress.started(str(lanes[-1].under_way), number)
            waits = threading.Event()
            while any(lane.process.poll() is None for lane in lanes):
                for lane in lanes:
                    _take(lane, journal, progress, mean)
                waits.wait(LOOK_S)
        finally:
            for lane in lanes:
                lane.process.send_signal(signal.SIGTERM)  # nothing, if it has ended
            for lane in lanes:
                lane.process.wait()
                _take(lane, journal, progress, mean)
        progress.end()
        for lane in lanes:
            if lane.under_way:
                raise MachineProblem(
                    f"Lane {lane.number} ended with exit code {lane.process.returncode} before "
                    f"{lane.under_way}; its log is {lane.folder / LOG}."
                )

    def _begun(self, number: int, journal: Journal, share: list[CrashPoint]) -> Lane:
        """Begin a lane with its share of the crash points."""
        assert journal.seed is not None
        folder = journal.path.parent / f"lane-{number}"
        folder.mkdir(exist_ok=True)
        own = Journal.new(folder, journal.plan)
        own.broker = journal.broker
        own.begin(share, journal.seed)
        asked = ("--seed", str(journal.seed), "--out", str(folder), "--depth", "full")
        with (folder / LOG).open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [*self.command, *asked, "--lanes", "1"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # its table, which nobody needs
                stderr=log,
                env=os.environ | self.run.environment,
                process_group=0,  # Ctrl-C is for the whole sweep
            )
        return Lane(number, own, process)


def _take(lane: Lane, journal: Journal, progress: Progress, mean: Mean) -> None:
    """Write the new results of a lane into the record of the whole sweep, and show them."""
    for result in lane.results():
        journal.add(result)
        mean.finished()
        show(result, progress, lane.number)
        if lane.under_way:
            progress.started(str(lane.under_way), lane.number)
