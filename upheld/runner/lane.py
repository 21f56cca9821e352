"""A lane from the inside: a process that judges the rows that the run asks for."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from upheld.errors import Problem, UsageProblem
from upheld.report import RowResult, Summary
from upheld.runner.choice import Choice
from upheld.runner.lanes import VARIABLE
from upheld.runner.plugin import Plugin
from upheld.supervisor.reaper import RUN_VARIABLE
from upheld.text import visible_data
from upheld.trial.rig import Rig
from upheld.ui.console import PlainConsole
from upheld.ui.timeleft import RowKey
from upheld.verdicts import Verdict


class Line:
    """A lane's pipes to its run, which no print in the lane can reach."""

    def __init__(self) -> None:
        self.rows = os.fdopen(os.dup(sys.stdin.fileno()))
        self._out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def tell(self, kind: str, **what: Any) -> None:
        """Send one message to the run."""
        self._out.write(json.dumps(visible_data({"kind": kind} | what)) + "\n")
        self._out.flush()


class LanePlugin(Plugin):
    """The judge in a lane: it judges one row at a time, as asked, until the end."""

    def __init__(self, rig: Rig, choice: Choice, line: Line) -> None:
        super().__init__(rig, choice, PlainConsole(quiet=True))
        self.line = line
        self.is_alone = False

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
        """Return the machine's problem alone: the options on stopping are the run's."""
        return self.problem

    def write_formats(self, summary: Summary) -> None:
        """Write nothing: the run writes its report for all lanes."""

    def report(self, result: RowResult, lane: int = 1) -> None:
        """Report the result to the run as well.

        A row that proved nothing beside others is asked again.
        """
        super().report(result, lane)
        is_unproven = result.verdict is Verdict.INCONCLUSIVE and not self.is_alone
        kind = "unproven" if is_unproven else "row"
        self.line.tell(kind, **result.model_dump(mode="json", exclude={"kind"}))


def is_lane() -> bool:
    """Return whether this process is a lane of a run.

    Raises:
        UsageProblem: The variable of lanes is set, and no run has set it.
    """
    if VARIABLE not in os.environ:
        return False
    if os.environ[VARIABLE] != os.environ.get(RUN_VARIABLE):
        raise UsageProblem(
            f"The environment variable {VARIABLE} is set, which only a run with --lanes does for "
            "processes of its own; unset it."
        )
    return True


@contextmanager
def as_lane() -> Iterator[Line]:
    """Let this process be a lane: its problems go to the run, in the run's words."""
    del os.environ[VARIABLE]
    line = Line()
    try:
        yield line
    except Problem as problem:
        line.tell("problem", text=str(problem), exit_code=problem.exit_code)
    except KeyboardInterrupt:  # the run ended this lane, and reports that itself
        pass
