"""SIGHUP, SIGTERM and a closed terminal end a command as Ctrl-C does.

Each command runs as a process of its own, with a temporary folder of its own. After its end no
process and no folder of it is left.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest
from terminals import Terminal, inherited

from upheld.brokers.embedded import open_embedded
from upheld.report import Summary
from upheld.supervisor.reaper import RunScope
from upheld.sweep.journal import Journal, Plan

DEADLINE_S: Final = 120.0
AT_ONCE_S: Final = 20.0  # with nine others on two cores
LOOK_S: Final = 0.05
ROWS: Final = ("--design", "plain", "--only", "@G40.aborted-upstream", "--seed", "1")
UPHELD: Final = (sys.executable, "-m", "upheld")
STUCK: Final = """
name = "stuck"
version = "1"
command = ["{python}", "-c", "pass"]
prepare = ["{python}", "-c", "import time; open('begun', 'w').close(); time.sleep(600)"]
programs = ["ledger"]
modes = ["exactly_once"]
"""


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of one broker for all commands."""
    with RunScope() as run:
        broker = open_embedded(run, tmp_path_factory.mktemp("broker"), why="a test")
        yield broker.bootstrap
        broker.close()


class Command:
    """A command under way in a folder."""

    def __init__(self, folder: Path, *arguments: str, ignored: signal.Signals | None = None):
        self.folder = folder
        self.out = folder / "out"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._said = folder / "said"
        with self._said.open("wb") as said, inherited(ignored):
            self.process = subprocess.Popen(
                [*UPHELD, *arguments],
                cwd=folder,
                env=os.environ | {"TMPDIR": str(self.temporary)},
                stdout=said,
                stderr=said,
            )

    @property
    def said(self) -> str:
        """All that the command has printed."""
        return self._said.read_text()

    def until(self, reached: Callable[[], object]) -> None:
        """Wait for a moment of the command."""
        deadline = time.monotonic() + DEADLINE_S
        while not reached():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(LOOK_S)

    def until_in_a_row(self) -> None:
        """Wait until one row is judged, and another one is under way."""
        self.until(lambda: self._rows() == 1 and self._histories() == 2)

    def end(self, *signals: signal.Signals) -> int:
        """Send signals, and return the exit code; nothing of the command is left."""
        for number in signals:
            if self.process.poll() is None:
                self.process.send_signal(number)
                time.sleep(LOOK_S)
        code = self.process.wait(AT_ONCE_S)
        assert "Traceback" not in self.said
        assert left(self.temporary) == []
        return code

    def summary(self) -> Summary:
        """Return the summary, which ends the report of whole lines."""
        *rows, last = (self.out / "report.jsonl").read_text().splitlines()
        assert all(json.loads(row)["kind"] == "row" for row in rows)
        return Summary(**json.loads(last))

    def _rows(self) -> int:
        report = self.out / "report.jsonl"
        return report.read_text().count("\n") if report.exists() else 0

    def _histories(self) -> int:
        return len(list(self.out.glob("history/*.jsonl*")))


def left(temporary: Path) -> list[object]:
    """Return the folders and processes that are left of a command."""
    found: list[object] = [*temporary.iterdir()]
    for process in psutil.process_iter(["environ"]):
        if str(temporary) in str(process.info["environ"]):
            found.append(process)
    return found


@pytest.mark.parametrize(
    "signals",
    [
        (signal.SIGHUP,),
        (signal.SIGTERM, signal.SIGINT, signal.SIGHUP),
    ],
    ids=str,
)
def test_a_signal_in_a_row_leaves_a_partial_report(
    tmp_path: Path, bootstrap: str, signals: tuple[signal.Signals, ...]
) -> None:
    """Summary, junit.xml and judged rows stay, also after a second signal."""
    run = Command(tmp_path, "run", *ROWS, "--bootstrap", bootstrap, "--out", "out")
    run.until_in_a_row()

    assert run.end(*signals) == 130

    summary = run.summary()
    assert (summary.exit_code, summary.partial) == (130, True)
    assert (run.out / "junit.xml").exists()
    assert "of 4 rows were judged" in run.said


def test_a_terminal_that_is_closed_ends_its_run(tmp_path: Path, bootstrap: str) -> None:
    """The kernel sends SIGHUP, and nothing can be printed; the report is whole."""
    options = [*ROWS, "--bootstrap", bootstrap, "--out", str(tmp_path / "out")]
    (tmp_path / "tmp").mkdir()
    with Terminal(*UPHELD, "run", *options, cwd=tmp_path, TMPDIR=str(tmp_path / "tmp")) as terminal:
        terminal.until(lambda screen: b"[1/4]" in screen, DEADLINE_S)
        terminal.hang_up()

        assert terminal.process.wait(AT_ONCE_S) == 130

    (*_, last) = (tmp_path / "out" / "report.jsonl").read_text().splitlines()
    assert Summary(**json.loads(last)).partial
    assert (tmp_path / "out" / "junit.xml").exists()
    assert left(tmp_path / "tmp") == []


def test_nohup_is_obeyed(tmp_path: Path, bootstrap: str) -> None:
    """A run whose parent ignores SIGHUP goes on to its verdict."""
    rows = (*ROWS, "--program", "ledger", "--mode", "exactly_once")
    run = Command(
        tmp_path,
        *("run", *rows, "--bootstrap", bootstrap, "--out", "out"),
        ignored=signal.SIGHUP,
    )
    run.until(lambda: list(run.out.glob("history/*.jsonl*")))

    run.process.send_signal(signal.SIGHUP)
    assert run.process.wait(DEADLINE_S) == 0

    assert not run.summary().partial


def test_a_second_signal_ends_lanes_at_once(tmp_path: Path, bootstrap: str) -> None:
    """Each lane gets each signal; the report is whole, and no lane is left."""
    options = ("--bootstrap", bootstrap, "--lanes", "2", "--out", "out")
    run = Command(tmp_path, "run", *ROWS, *options)
    report = run.out / "report.jsonl"
    run.until(lambda: report.exists() and report.read_text().count("\n") >= 1)

    assert run.end(signal.SIGINT, signal.SIGINT, signal.SIGTERM) == 130

    assert run.summary().partial
    assert (run.out / "junit.xml").exists()


def test_a_signal_while_a_design_is_prepared_ends_that_too(tmp_path: Path, bootstrap: str) -> None:
    """The command of `prepare` would sleep for ten minutes."""
    (tmp_path / "design.toml").write_text(STUCK)
    run = Command(
        tmp_path, "run", "--design", ".", "--bootstrap", bootstrap, "--lanes", "2", "--out", "out"
    )
    run.until((tmp_path / "begun").exists)

    assert run.end(signal.SIGHUP, signal.SIGTERM) == 130
    assert run.said.splitlines()[-1] == "upheld: interrupted"


def test_a_signal_while_a_broker_boots_leaves_no_broker(tmp_path: Path) -> None:
    """Two signals, one of them in the middle of the end, and no process is left."""
    run = Command(tmp_path, "run", *ROWS, "--broker", "embedded", "--out", "out")
    run.until(lambda: list(run.out.glob("logs/broker.log")))

    assert run.end(signal.SIGHUP, signal.SIGHUP) == 130
    assert run.said.splitlines()[-1] == "upheld: interrupted"


def test_a_sweep_goes_on_where_a_signal_ended_it(tmp_path: Path, bootstrap: str) -> None:
    """Its journal is whole, and the sentence says how to go on."""
    sweep = Command(tmp_path, "sweep", "--bootstrap", bootstrap, "--out", "out", "--seed", "1")
    sweep.until(lambda: "no fault, run 1" in sweep.said)

    assert sweep.end(signal.SIGTERM, signal.SIGTERM) == 130

    assert f"goes on with --out {sweep.out}" in sweep.said
    plan = Plan("plain", "ledger", "exactly_once", "txn")
    assert Journal(sweep.out, plan).points == []


def test_a_signal_ends_smoke_and_broker(tmp_path: Path, bootstrap: str) -> None:
    """The end of a broker in the foreground is its normal end."""
    for name, arguments, said, code in (
        ("smoke", ("smoke", "--design", "plain", "--bootstrap", bootstrap), "starts", 130),
        ("broker", ("broker", "--bootstrap", bootstrap), "answers at", 0),
    ):
        (tmp_path / name).mkdir()
        command = Command(tmp_path / name, *arguments)
        command.until(lambda command=command, said=said: said in command.said)

        assert command.end(signal.SIGHUP, signal.SIGHUP) == code


def test_a_reader_that_leaves_a_red_smoke_changes_nothing(tmp_path: Path, bootstrap: str) -> None:
    """Its exit code is 3, with and without --json, and whether or not anyone reads."""
    (tmp_path / "design.toml").write_text(STUCK.replace("prepare", "#"))
    for options in ("", " --json"):
        line = f"{' '.join(UPHELD)} smoke --design . --bootstrap {bootstrap}{options} | true"
        end = subprocess.run(
            ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

        assert (end.returncode, "Traceback" in end.stderr) == (3, False), end.stderr
