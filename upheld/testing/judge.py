"""The judge of one design: each row is judged in a lane when a test asks for it.

A lane is the process of `upheld run` that judges one row at a time. So the broker boots once, and
pytest alone decides which rows are judged, and in which order.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Final, NamedTuple

from filelock import FileLock

from upheld import commands
from upheld.cli import parsed
from upheld.cli.choices import seed_of
from upheld.cli.machine import (
    begin_report,
    demand_early,
    own_folder,
    prepare_all,
    run_scope,
    subjects_of,
)
from upheld.cli.run import as_typed
from upheld.errors import MachineProblem, Problem, UsageProblem
from upheld.protocol.manifest import Manifest
from upheld.reading import loaded
from upheld.report import RowResult
from upheld.report.folder import LOGS
from upheld.runner.account import RunAccount
from upheld.runner.choice import Choice
from upheld.runner.lanes import Lane, lane_process
from upheld.supervisor.reaper import RunScope
from upheld.testing.choosing import Understood, known
from upheld.ui.console import PlainConsole
from upheld.ui.timeleft import RowKey

LOG: Final = "lane-1.txt"  # what the lane prints beside its answers


class Finding(NamedTuple):
    """The result of a row, and the folder of the report that it is in."""

    result: RowResult
    folder: Path


class Judge:
    """The judge of one design.

    Attributes:
        found: The design and its options.
        rows: The ids of the rows that it may be asked for.
        features: The features of a user's own that they are in, in order.
        out: The folder of its report; None until a row is asked for.
    """

    def __init__(self, found: Understood, folder: Path) -> None:
        self.found = found
        self.rows = set[str]()
        self.features: dict[Path, None] = {}
        self.out: Path | None = None
        self._folder = folder
        self._opened = ExitStack()
        self._account: RunAccount | None = None
        self._lane: Lane | None = None
        self._broker: tuple[str, str] | None = None
        self._results: dict[str, Finding] = {}
        self._problem: Problem | None = None

    def judged(self, row_id: str) -> Finding:
        """Return the result of a row, which is judged the first time that it is asked for.

        Raises:
            Problem: No row can be judged any more.
        """
        if row_id in self._results:
            return self._results[row_id]
        if self._problem:
            raise self._problem
        try:
            self._results[row_id] = self._ask(row_id)
        except Problem as problem:
            self._problem = problem
            raise
        return self._results[row_id]

    def _ask(self, row_id: str) -> Finding:
        """Have the lane judge a row, and wait for its result."""
        account = self._account or self._open()
        lane = self._lane
        assert lane
        assert self.out
        key = RowKey(self.found.manifest.name, row_id, 0)
        account.choice.rows[key.design].add(row_id)
        lane.ask(key, is_alone=True)
        for line in _lines(lane):
            match line.pop("kind"):
                case "opened":
                    self._broker = f"{line['broker']} {line['version']}", line["why"]
                    account.choice.again = f"upheld run --broker {line['broker']}"
                case "row":
                    result = RowResult(**line)
                    account.report(result)
                    lane.state = "waits"
                    return Finding(result, self.out)
                case "problem":
                    lane.state = "ends"
                    is_usage = line["exit_code"] == UsageProblem.exit_code
                    raise (UsageProblem if is_usage else MachineProblem)(line["text"])
        lane.state = "ends"
        raise MachineProblem(
            f"The process that judges {key.design} ended in the middle of {row_id} with exit code "
            f"{lane.process.wait()}; {self.out / LOGS / LOG} may say why."
        )

    def _open(self) -> RunAccount:
        """Make the output folder, prepare the design and begin the lane."""
        own = [f"--features={place}" for place in self.features]
        arguments = parsed([*self.found.arguments.argv, *own])
        manifest = self.found.manifest
        with chdir(self._folder):
            out = self._opened.enter_context(own_folder(None))
            begin_report(None, out)
            run = self._opened.enter_context(run_scope())
        with _alone(manifest):
            demand_early([manifest])
            prepare_all([manifest], run, out)
        choice = Choice(
            [manifest],
            known(tuple(self.features)),
            {manifest.name: set()},
            subjects=subjects_of([manifest]),
            is_narrowed=True,
            formats=arguments.report,
            keep=arguments.keep,
            specs={manifest.name: _short(manifest.folder, self._folder)},
            narrowed=as_typed(arguments),
        )
        account = RunAccount(choice, out, seed_of(arguments), PlainConsole(quiet=True))
        self.out = out
        self._lane = Lane(1, self._process(arguments.argv, run, account))
        self._account = account
        return account

    def _process(
        self, argv: list[str], run: RunScope, account: RunAccount
    ) -> "subprocess.Popen[str]":
        """Begin the lane; it may be asked for the rows that the tests of this session name."""
        name = self.found.manifest.name
        rows = run.scratch / "rows"
        rows.write_text("".join(f"{name} {row_id}\n" for row_id in sorted(self.rows)))
        own = ["--rows", str(rows), "--seed", str(account.seed), "--quiet"]
        own += ["--out", str(account.out / "lane-1")]
        log = account.out / LOGS / LOG
        log.parent.mkdir(exist_ok=True)
        with log.open("w") as stderr:
            return lane_process(commands.own_module("upheld", *argv, *own), run, stderr)

    def close(self) -> None:
        """End the lane with all that it started, and write the report."""
        with self._opened:
            if self._account is None or self._lane is None:
                return
            if self._lane.state == "judges":
                self._account.interrupted = True
                self._lane.process.send_signal(signal.SIGTERM)
            self._lane.end()
            try:
                _drain(self._lane)
            except KeyboardInterrupt:  # a second one cuts the end short
                self._lane.process.send_signal(signal.SIGTERM)
                self._lane.process.wait()
            if self._broker:
                self._account.close(*self._broker)


@contextmanager
def _alone(manifest: Manifest) -> Iterator[None]:
    """Keep other processes from preparing the same design, as workers of pytest-xdist would."""
    if not manifest.prepare:
        yield
        return
    folder = sha256(os.fsencode(manifest.folder)).hexdigest()[:16]
    with FileLock(Path(gettempdir()) / f"upheld-prepares-{folder}.lock"):
        yield


def _lines(lane: Lane) -> Iterator[dict[str, Any]]:
    """Go through the lines of a lane, until its end."""
    assert lane.process.stdout
    for line in lane.process.stdout:
        yield loaded(line)


def _drain(lane: Lane) -> None:
    """Wait for the end of a lane, and read what it still says."""
    assert lane.process.stdout
    with lane.process.stdout:
        for _ in _lines(lane):
            pass
    lane.process.wait()


def _short(folder: Path, current: Path) -> str:
    """Return the name of a folder as it is typed in the current one."""
    name = os.path.relpath(folder, current)
    return str(folder) if name.startswith("..") else name
