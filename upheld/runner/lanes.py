"""Lanes: the rows of one run, judged side by side.

Each lane is a process with a broker, clients and instances of its own. A row waits more than it
works: for a member's session to end, for an interval, for a bound. A lane shares the machine alone
with the others, so a row means the same with lanes as without.

The run hands out one row at a time and writes the report. A lane reads rows from its standard
input, as `[design, row, repetition, whether no other lane lives]` a line. It answers with the lines
of a report, and ends at the end of its input.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final, Literal

from rich.console import Console

import upheld
from upheld.errors import MachineProblem, UsageProblem
from upheld.report import RowResult
from upheld.runner.account import RunAccount
from upheld.runner.choice import Choice
from upheld.supervisor.interrupts import heard
from upheld.supervisor.reaper import RunScope
from upheld.text import visible
from upheld.threads import Heard
from upheld.ui.timeleft import RowKey

LAST_WORDS_S: Final = 1.0  # a lane has ended by then, but its children may still have its stderr
VARIABLE: Final = "UPHELD_LANE"  # in a lane's environment: the id of its run

# A line of a lane, or None at its end; nothing at all is Ctrl-C.
Output = SimpleQueue[tuple["Lane", str | None] | None]


@dataclass(eq=False)
class Lane:
    """One process that judges rows."""

    number: int
    process: "subprocess.Popen[str]"
    state: Literal["boots", "waits", "judges", "ends", "has ended"] = "boots"
    row: RowKey | None = None  # the last row that it was asked for

    def ask(self, key: RowKey, *, is_alone: bool = False) -> None:
        """Have the lane judge a row."""
        assert self.process.stdin
        self.state = "judges"
        self.row = key
        with suppress(BrokenPipeError):  # it has ended, which its output says too
            self.process.stdin.write(json.dumps([*key, is_alone]) + "\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """Have the lane end."""
        assert self.process.stdin
        self.state = "ends"
        with suppress(BrokenPipeError):
            self.process.stdin.close()


class Lanes(RunAccount):
    """A run in lanes."""

    def __init__(self, choice: Choice, out: Path, seed: int, say: Console) -> None:
        super().__init__(choice, out, seed, say)
        sins = {m.name: m.sin for m in choice.manifests if m.sin and m.sin.anomaly == "late"}
        keys = choice.keys()
        # Rows that prove nothing beside others: a late design has to be late alone.
        self.unproven = [
            key for key in keys if key.design in sins and key.row_id != sins[key.design].control
        ]
        alone = set(self.unproven)
        self.on_a_cluster = choice.on_a_cluster()
        self.waiting = [key for key in keys if key not in alone]
        self.is_over = False  # whether no more rows are begun
        self.lanes: list[Lane] = []
        self.broker: tuple[str, str] | None = None  # the lanes' broker, and why it was chosen

    def judge(self, command: list[str], count: int, run: RunScope) -> None:
        """Judge every row in `count` lanes.

        The command begins each of them with an output folder of its own.
        """
        self.memory.start()
        self.time_left.lanes = count
        self.begin(self.waiting, self.unproven)
        said: Output = SimpleQueue()
        passing: list[Heard] = []
        with heard(lambda: said.put(None)):
            for number in range(1, count + 1):
                passing.append(self._begin_lane(number, command, run, said))
            self._take_all(said)
            for beside in passing:
                beside.join(LAST_WORDS_S)
            if self.broker:
                self.close(*self.broker)

    def _begin_lane(self, number: int, command: list[str], run: RunScope, said: Output) -> Heard:
        """Begin a lane, and listen to it; return the thread that passes on its other output."""
        folder = self.out / f"lane-{number}"
        lane = Lane(number, lane_process([*command, "--out", str(folder)], run))
        self.lanes.append(lane)
        Heard(_listen, lane, said.put, name=f"lane-{number}").start()
        beside = Heard(_pass_on, lane, self.progress.message, name=f"beside lane-{number}")
        beside.start()
        return beside

    def _end_lanes(self) -> None:
        """End each lane as Ctrl-C does; a second time, a lane cuts its own end short."""
        self.is_over = True
        for lane in self.lanes:
            lane.process.send_signal(signal.SIGTERM)

    def _take_all(self, said: Output) -> None:
        """Take the lines of all lanes, until all have ended.

        The run is interrupted as often as the signals come.
        """
        while not all(lane.state == "has ended" for lane in self.lanes):
            if (told := said.get()) is None:
                self.interrupted = True
                self._end_lanes()
                continue
            lane, line = told
            if line is None:
                self.note_end(lane, lane.process.wait())
            else:
                self._take_line(lane, line)
            self.hand_out()
            self.time_left.lanes = sum(
                lane.state not in {"ends", "has ended"} for lane in self.lanes
            )

    def _take_line(self, lane: Lane, line: str) -> None:
        """Take a line of a lane; a report that cannot be written ends the run."""
        try:
            self.take(lane, json.loads(line))
        except OSError as error:
            self.problem = f"Nothing more can be written below {self.out} ({error.strerror})."
            self._end_lanes()

    def take(self, lane: Lane, line: dict[str, Any]) -> None:
        """Note that a lane can be asked, has judged a row, or cannot go on."""
        match line.pop("kind"):
            case "opened":
                lane.state = "waits"
                if not self.broker:
                    self.broker = f"{line['broker']} {line['version']}", line["why"]
                    self.choice.again = f"upheld run --broker {line['broker']}"
                    self.progress.message(
                        f"upheld {upheld.__version__}, seed {self.seed}, {len(self.lanes)} lanes, "
                        f"each on broker {visible(self.broker[0])} ({visible(line['why'])})"
                        f"{visible(self.choice.first.said)}"
                    )
            case "row":
                result = RowResult(**line)
                self.report(result, lane.number)
                self.stopped = self.stopped or self.why_to_stop(result)
                self.is_over = self.is_over or bool(self.stopped)
                lane.state = "waits"
            case "unproven":
                assert lane.row
                self.unproven.append(lane.row)
                self.time_left.postponed(lane.number)
                self.progress.stopped(lane.number)
                self.progress.message(
                    f"again, alone: {self._named(line['design'], line['id'])}: "
                    f"{visible(line['reason'])}"
                )
                lane.state = "waits"
            case "problem":
                is_usage = line["exit_code"] == UsageProblem.exit_code
                self.refused = (UsageProblem if is_usage else MachineProblem)(line["text"])
                self.problem = line["text"]
                lane.state = "ends"
                self.is_over = True

    def hand_out(self) -> None:
        """Give a row to each lane that waits.

        One lane alone stays for the rows that want that, when the others have ended.
        """
        for lane in [lane for lane in self.lanes if lane.state == "waits"]:
            others = {other.state for other in self.lanes if other is not lane}
            if self.waiting and not self.is_over:
                self.ask(lane, self.next_row(lane))
            elif others & {"boots", "waits", "judges"} or self.is_over or not self.unproven:
                lane.end()
            elif "ends" not in others:
                self.ask(lane, self.unproven.pop(0), is_alone=True)

    def ask(self, lane: Lane, key: RowKey, *, is_alone: bool = False) -> None:
        """Have a lane judge a row, and show it."""
        self.row_started(key, lane.number)
        lane.ask(key, is_alone=is_alone)

    def next_row(self, lane: Lane) -> RowKey:
        """Take the next row for a lane, and return it.

        It is the first one left of the lane's own design, since a design boots once. Else it is of
        a design that no lane is at, or else any. While a lane has a cluster, which takes half a
        gigabyte, rows on another one come last.
        """
        own = lane.row.design if lane.row else None
        others = [other.row for other in self.lanes if other.row and other is not lane]
        taken = {key.design for key in others}
        has_cluster = any(key.row_id in self.on_a_cluster for key in others)

        def rank(key: RowKey) -> tuple[bool, bool, bool]:
            waits = has_cluster and key.row_id in self.on_a_cluster
            return waits, key.design != own, key.design in taken

        best = min(self.waiting, key=rank)
        self.waiting.remove(best)
        return best

    def note_end(self, lane: Lane, code: int) -> None:
        """Note a lane's end; any exit code but 0 is a problem of the machine.

        So is an end before the lane was told to end.
        """
        if (code or lane.state != "ends") and not self.interrupted and not self.problem:
            where = ""
            if lane.row and lane.state == "judges":
                where = f" in the middle of {lane.row.row_id}"
            self.problem = f"Lane {lane.number} ended{where} with exit code {code}."
            self.is_over = True
        lane.state = "has ended"


def lane_process(
    command: list[str], run: RunScope, stderr: int | IO[str] = subprocess.PIPE
) -> "subprocess.Popen[str]":
    """Begin a lane in a process group of its own, since Ctrl-C is for the run.

    If the run is killed, its reaper ends the lane.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        errors="replace",
        env=os.environ | run.environment | {VARIABLE: run.run_id},
        process_group=0,
    )


def _listen(lane: Lane, put: Callable[[tuple[Lane, str | None]], None]) -> None:
    assert lane.process.stdout
    try:
        for line in lane.process.stdout:
            put((lane, line))
    finally:
        put((lane, None))


def _pass_on(lane: Lane, say: Callable[[str], None]) -> None:
    """Print the other output of a lane above the live line, which it would garble."""
    assert lane.process.stderr
    for line in lane.process.stderr:
        say(visible(line.rstrip("\n")))
