"""A command fits its terminal; into a pipe it prints plain lines."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from reports import summary
from terminals import Terminal

from upheld.report import RowResult, Writer
from upheld.spec import catalogue
from upheld.verdicts import Verdict

ANSWER_S = 60.0
UPHELD = (sys.executable, "-m", "upheld")
STYLE = re.compile(r"\x1b\[[\d;]*m")
COLOUR = re.compile(r"\x1b\[(?:[\d;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[\d;]*)?m")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder in which a run was violated, and was unsupported for one reason."""
    out = tmp_path / "upheld-out" / "latest"
    out.mkdir(parents=True)
    writer = Writer(out)
    for number, (name, verdict, reason) in enumerate(
        [
            ("G1.a", Verdict.VIOLATED, ""),
            ("G2.a", Verdict.UNSUPPORTED, "mine keeps no state in redis (capability redis)"),
        ]
    ):
        writer.write(
            RowResult(
                design="mine",
                id=f"{name}[ledger-exactly_once]",
                guarantee=f"G{number + 1}",
                name="a claim",
                verdict=verdict,
                reason=reason,
                seconds=1,
            )
        )
    writer.write(summary())
    writer.close()
    return tmp_path


def on_a_terminal(folder: Path, *line: str, columns: int = 70, **environment: str) -> str:
    """Return what a command writes to a terminal of so many columns."""
    with Terminal(*UPHELD, *line, columns=columns, cwd=folder, **environment) as terminal:
        assert terminal.end() == 0
        return terminal.screen.decode().replace("\r\n", "\n")


def in_a_pipe(folder: Path, *line: str) -> str:
    """Return what a command writes into a pipe."""
    end = subprocess.run(
        [*UPHELD, *line], cwd=folder, capture_output=True, timeout=ANSWER_S, check=True
    )
    assert end.stderr == b""
    return end.stdout.decode()


@pytest.mark.parametrize("columns", [50, 70, 120])
def test_a_guarantee_is_one_line_of_the_terminal(folder: Path, columns: int) -> None:
    """The promise is cut where the terminal ends, and the cut can be seen."""
    lines = STYLE.sub("", on_a_terminal(folder, "list", columns=columns)).splitlines()

    rows = [line for line in lines if re.match(r"(G\d+|SLA) ", line)]
    assert len(rows) == len(catalogue.load().guarantees)
    assert max(map(len, rows)) <= columns
    assert sum(line.endswith("…") for line in rows) > len(rows) / 2


@pytest.mark.parametrize(
    "line",
    [
        ("list",),
        ("list", "--design", "plain"),
        ("explain", "G1"),
        ("explain", "torn"),
        ("report", "upheld-out/latest"),
        ("report", "upheld-out/latest", "--markdown"),
        ("run", "--help"),
        ("lint",),
    ],
    ids=" ".join,
)
def test_a_pipe_gets_plain_text(folder: Path, line: tuple[str, ...]) -> None:
    """There is no control character but the ends of lines."""
    text = in_a_pipe(folder, *line)

    assert text.endswith("\n")
    assert [char for char in text if not char.isprintable() and char != "\n"] == []


def test_a_pipe_gets_whole_promises(folder: Path) -> None:
    """A script that looks for a word finds it."""
    text = in_a_pipe(folder, "list")

    assert [promise for promise in catalogue.load().promises.values() if promise not in text] == []


def test_the_verdict_has_a_colour_unless_none_is_wanted(folder: Path) -> None:
    """NO_COLOR is obeyed, whatever it is set to, and so is a terminal that knows none."""
    assert COLOUR.search(on_a_terminal(folder, "list"))
    assert not COLOUR.search(on_a_terminal(folder, "list", NO_COLOR="1"))
    assert not COLOUR.search(on_a_terminal(folder, "report", "upheld-out/latest", NO_COLOR="0"))
    assert "\x1b" not in on_a_terminal(folder, "list", TERM="dumb")


def test_an_explanation_fits_the_terminal(folder: Path) -> None:
    """Sentences are wrapped between words; lines of features and ids stay whole."""
    text = on_a_terminal(folder, "explain", "G22", columns=60)

    promise, _, _ = text.partition("\n\n")
    assert max(map(len, promise.splitlines())) <= 60
    assert " ".join(promise.split()) == f"G22 {catalogue.load().promises['G22']}"


def test_a_report_says_why_rows_are_unsupported(folder: Path) -> None:
    """The reason stands below the table, with its rows."""
    text = in_a_pipe(folder, "report", "upheld-out/latest")

    said = "unsupported, since mine keeps no state in redis (capability redis): G2.a[ledger-"
    assert said in text
