"""Lanes: the rows of one run judged side by side, each lane a process with a broker, clients and
instances of its own.

A row waits more than it works: for a member's session to end, for an interval, for a bound. What a
lane shares with the others is the machine alone, so that a row means the same with lanes as
without.

The run hands out one row at a time and writes the report. A lane reads rows from its standard
input, `[design, row, repetition, whether no other lane lives]` a line, and answers with the lines
of a report; at the end of its input it ends.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal

import pytest
from rich.console import Console

import upheld
from upheld.errors import MachineProblem, Problem, UsageProblem
from upheld.report import RowResult, joined
from upheld.runner.plugin import Choice, Plugin, RunAccount
from upheld.supervisor.reaper import RunScope
from upheld.trial.rig import Rig
from upheld.ui.timeleft import RowKey
from upheld.verdicts import Verdict

LAST_WORDS_S = 1.0  # a lane has ended by then, but whoever it began may have its stderr
VARIABLE = "UPHELD_LANE"  # in a lane's environment: the id of its run


@dataclass(eq=False)
class Lane:
    """One process that judges."""

    number: int
    process: "subprocess.Popen[str]"
    state: Literal["boots", "waits", "judges", "ends", "has ended"] = "boots"
    row: RowKey | None = None  # what it was asked last

    def ask(self, key: RowKey, *, is_alone: bool = False) -> None:
        """Have it judge a row."""
        assert self.process.stdin
        self.state, self.row = "judges", key
        with suppress(BrokenPipeError):  # it has ended: its output says so too
            self.process.stdin.write(json.dumps([*key, is_alone]) + "\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """Have it end."""
        assert self.process.stdin
        self.state = "ends"
        with suppress(BrokenPipeError):
            self.process.stdin.close()


class Lanes(RunAccount):
    """A run in lanes."""

    def __init__(self, choice: Choice, out: Path, seed: int, say: Any) -> None:
        super().__init__(choice, out, seed, say)
        sins = {m.name: m.sin for m in choice.manifests if m.sin and m.sin.anomaly == "late"}
        keys = choice.keys()
        # What proves nothing beside others: a late design is shown to be that alone.
        self.unproven = [
            key for key in keys if key.design in sins and key.row_id != sins[key.design].control
        ]
        alone = set(self.unproven)
        self.waiting = [key for key in keys if key not in alone]
        self.is_over = False  # whether no more rows are begun
        self.lanes: list[Lane] = []
        self.broker: tuple[str, str] | None = None  # what the lanes are judged on, and why that
        self.refused: Problem | None = None  # why no lane could begin

    def judge(self, command: list[str], count: int, run: RunScope) -> None:
        """Judge every row in so many lanes, each begun by the command with an output folder of its
        own.
        """
        self.memory.start()
        self.time_left.lanes = count
        self.begin(self.waiting, self.unproven)
        said: SimpleQueue[tuple[Lane, str | None]] = SimpleQueue()
        passing: list[threading.Thread] = []
        for number in range(1, count + 1):
            lane = Lane(
                number, self._begun([*command, "--out", str(self.out / f"lane-{number}")], run)
            )
            self.lanes.append(lane)
            threading.Thread(
                target=_listen, args=(lane, said.put), daemon=True, name=f"lane-{number}"
            ).start()
            beside = threading.Thread(
                target=_pass_on, args=(lane, self.progress.message), daemon=True
            )
            beside.start()
            passing.append(beside)
        try:
            self._hear(said)
        except (KeyboardInterrupt, MachineProblem) as error:
            self.interrupted = isinstance(error, KeyboardInterrupt)
            self.problem = self.problem if self.interrupted else str(error)
            self.is_over = True
            for lane in self.lanes:
                lane.process.send_signal(signal.SIGTERM)
            self._hear(said)
        for beside in passing:
            beside.join(LAST_WORDS_S)
        if self.broker:
            joined(
                self.out, [self.out / f"lane-{lane.number}" / "junit.xml" for lane in self.lanes]
            )
            self.close(*self.broker)

    @staticmethod
    def _begun(command: list[str], run: RunScope) -> "subprocess.Popen[str]":
        """Begin a lane in a process group of its own, since Ctrl-C is for the run; if the run is
        killed, its reaper ends it.
        """
        environment = os.environ | run.environment | {VARIABLE: run.run_id}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            errors="replace",
            env=environment,
            process_group=0,
        )

    def _hear(self, said: "SimpleQueue[tuple[Lane, str | None]]") -> None:
        """Take what the lanes say, until all have ended."""
        while not all(lane.state == "has ended" for lane in self.lanes):
            lane, line = said.get()
            if line is None:
                self.ended(lane, lane.process.wait())
            else:
                self.heard(lane, json.loads(line))
            self.hand_out()
            self.time_left.lanes = sum(
                lane.state not in {"ends", "has ended"} for lane in self.lanes
            )

    def heard(self, lane: Lane, line: dict[str, Any]) -> None:
        """A lane can be asked, has judged a row, or cannot go on."""
        match line.pop("kind"):
            case "opened":
                lane.state = "waits"
                if not self.broker:
                    self.broker = f"{line['broker']} {line['version']}", line["why"]
                    self.choice.again = f"upheld run --broker {line['broker']}"
                    self.progress.message(
                        f"upheld {upheld.__version__}, seed {self.seed}, {len(self.lanes)} lanes, "
                        f"each on broker {self.broker[0]} ({line['why']})"
                    )
            case "row":
                result = RowResult(**line)
                if result.history:
                    result.history = f"lane-{lane.number}/{result.history}"
                if result.picture:
                    result.picture = f"lane-{lane.number}/{result.picture}"
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
                    f"again, alone: {self._named(line['design'], line['id'])}: {line['reason']}"
                )
                lane.state = "waits"
            case "problem":
                self.refused = {4: UsageProblem}.get(line["exit_code"], MachineProblem)(
                    line["text"]
                )
                self.problem, lane.state, self.is_over = line["text"], "ends", True

    def hand_out(self) -> None:
        """Ask who waits to be asked; one lane alone stays for the rows that want that, when the
        others have ended.
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
        """The first row left of the lane's own design, else of one that no lane is at, else of any:
        a design boots once.
        """
        own = lane.row[0] if lane.row else None
        taken = {other.row[0] for other in self.lanes if other.row and other is not lane}
        best = min(self.waiting, key=lambda key: (key[0] != own, key[0] in taken))
        self.waiting.remove(best)
        return best

    def ended(self, lane: Lane, code: int) -> None:
        """A lane that has no more to do ends with 0; any other end is the machine's."""
        if (code or lane.state != "ends") and not self.interrupted and not self.problem:
            where = (
                f" in the middle of {lane.row[1]}" if lane.row and lane.state == "judges" else ""
            )
            self.problem, self.is_over = (
                f"Lane {lane.number} ended{where} with exit code {code}.",
                True,
            )
        lane.state = "has ended"


def _listen(lane: Lane, put: Callable[[tuple[Lane, str | None]], None]) -> None:
    assert lane.process.stdout
    for line in lane.process.stdout:
        put((lane, line))
    put((lane, None))


def _pass_on(lane: Lane, say: Callable[[str], None]) -> None:
    """Print what a lane says beside its answers, above the live line that it would garble."""
    assert lane.process.stderr
    for line in lane.process.stderr:
        with suppress(MachineProblem):  # the pipe has to be emptied all the same
            say(line.rstrip("\n"))


class Line:
    """A lane's line to its run: the pipes that it was born with, out of the reach of whatever
    prints.
    """

    def __init__(self) -> None:
        self.rows = os.fdopen(os.dup(sys.stdin.fileno()))
        self._out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def tell(self, kind: str, **what: Any) -> None:
        """Say one thing."""
        self._out.write(json.dumps({"kind": kind} | what) + "\n")
        self._out.flush()


class LanePlugin(Plugin):
    """A lane's judge: what it is asked, one row at a time, until nothing more is asked."""

    def __init__(self, rig: Rig, choice: Choice, line: Line) -> None:
        super().__init__(rig, choice, Console(quiet=True))
        self.line, self.is_alone = line, False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Judge row after row."""
        items = {self.key(i): i for i in session.items if isinstance(i, pytest.Function)}
        broker = self.rig.broker
        self.line.tell("opened", broker=broker.kind, version=broker.version, why=broker.why)
        for asked in self.line.rows:
            *key, self.is_alone = json.loads(asked)
            item = items[RowKey(*key)]
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
            if session.shouldstop:
                break
        return True

    def why_to_stop(self, _: RowResult) -> str | None:
        """What the options say of stopping is for the run."""
        return self.problem

    def is_last_word(self, result: RowResult) -> bool:
        """What proved nothing in company is asked again."""
        return self.is_alone or result.verdict is not Verdict.INCONCLUSIVE

    def report(self, result: RowResult, lane: int = 1) -> None:
        """Say it to the run as well, or that it has to be asked again."""
        super().report(result, lane)
        kind = "row" if self.is_last_word(result) else "unproven"
        self.line.tell(kind, **result.model_dump(mode="json", exclude={"kind"}))


@contextmanager
def lane() -> Iterator[Line]:
    """This process as a lane: what it cannot do is said to the run, in the run's words."""
    del os.environ[VARIABLE]
    line = Line()
    try:
        yield line
    except Problem as problem:
        line.tell("problem", text=str(problem), exit_code=problem.exit_code)
    except KeyboardInterrupt:  # the run has ended it, and says so
        pass
