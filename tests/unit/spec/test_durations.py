"""The shipped durations have an estimate for every row, and give their order.

A tool makes them.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from upheld.cli import main
from upheld.errors import UsageProblem
from upheld.protocol.manifest import load as manifest
from upheld.report import RowResult
from upheld.spec import catalogue, durations
from upheld.spec.durations import Durations, Recorded, most_news_first
from upheld.spec.selection import promised
from upheld.verdicts import Verdict

ROOT = Path(__file__).parents[3]
MADE = Durations(
    designs={
        "plain": Recorded(boot_s=1, rows_s={"G1.a[x]": 2, "G1.a[y]": 4, "G2.b": 1}),
        "spark": Recorded(boot_s=9, rows_s={"G1.a[x]": 10}, unsupported_s={"G2.b": 0}),
    }
)
DAMAGED = [
    "",
    "{",
    "[]",
    '{"format": 2}',
    '{"designs": {"plain": {"rows_s": {"G1.a": -1}}}}',
    "\x00",
]


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the shipped file that a test may damage."""
    copy = tmp_path / "durations.json"
    copy.write_bytes(durations.FILE.read_bytes())
    monkeypatch.setattr(durations, "FILE", copy)
    return copy


def row(row_id: str, seconds: float, **fields: object) -> str:
    """Return one line of a report."""
    given = {"history": f"history/{row_id}.jsonl"} | fields
    return (
        RowResult.model_validate(
            {
                "design": "plain",
                "id": row_id,
                "guarantee": row_id.partition(".")[0],
                "name": "x",
                "verdict": Verdict.UPHELD,
                "seconds": seconds,
            }
            | given
        ).model_dump_json()
        + "\n"
    )


def made(*reports: Path) -> "subprocess.CompletedProcess[str]":
    """Run the tool on a tree whose shipped file is a copy."""
    code = (
        "import runpy, sys; from pathlib import Path; from upheld.spec import durations;"
        "durations.FILE = Path(sys.argv.pop(1)); runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.argv[0] = {str(ROOT / 'tools/durations.py')!r}; {code}",
    ]
    return subprocess.run(
        [*command, str(durations.FILE), *map(str, reports)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_row_of_the_shipped_designs_has_an_estimate_of_its_own() -> None:
    """Nearly every row of plain was recorded.

    A row without a median still has an estimate above nothing.
    """
    loaded = durations.load()
    rows = promised(catalogue.load(), manifest("plain"))

    plain = loaded.designs["plain"]
    missing = [row.id for row in rows if row.id not in plain.rows_s | plain.unsupported_s]

    assert len(missing) < len(rows) / 20, missing
    assert all(loaded.seconds("spark", row.id) > 0 for row in rows)


@pytest.mark.parametrize(
    ("design", "row_id", "seconds"),
    [
        ("plain", "G1.a[x]", 2),
        ("broken/forgets", "G1.a[y]", 4),
        ("spark", "G2.b", 0),
        ("spark", "G1.a[y]", 20),
        ("mine", "G1.a[x]", 10),
        ("plain", "G1.a[z]", 3),
        ("plain", "G9.new", 2),
    ],
    ids=[
        "median",
        "wrong-design",
        "declined",
        "row-of-another",
        "unknown-design",
        "sibling",
        "unknown-row",
    ],
)
def test_an_estimate_is_made_of_what_is_nearest(design: str, row_id: str, seconds: float) -> None:
    """An estimate is the median of the row, or of the nearest recorded row.

    In order: plain's for a wrong design, another design's at this design's pace, the longest, a
    sibling's, any row's.
    """
    assert MADE.seconds(design, row_id) == seconds


def test_an_estimate_is_never_an_error() -> None:
    """Not even where nothing was recorded at all."""
    assert Durations().seconds("mine", "G1.a") == durations.UNKNOWN_S
    assert Durations().boot_seconds("mine") == 0
    assert MADE.boot_seconds("mine") == 9


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_file_ends_a_run_before_it_begins(
    text: str, shipped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence, exit 4, and the report of an older run in that folder stays."""
    shipped.write_text(text)
    report = tmp_path / "out" / "report.jsonl"
    report.parent.mkdir()
    report.write_text("older\n")

    assert main(["run", "--design", "plain", "--out", str(report.parent)]) == 4

    said = capsys.readouterr().err
    assert said.startswith(f"upheld: {shipped} holds no durations of rows (")
    assert said.count("\n") == 1
    assert report.read_text() == "older\n"


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    """The file is named, with the system's reason."""
    with pytest.raises(UsageProblem, match=r"nowhere cannot be read: No such file or directory\."):
        durations.load(tmp_path / "nowhere")


def test_the_rows_that_bring_most_news_come_first() -> None:
    """The cheapest row of each guarantee comes first, then the next of each.

    The cheapest come before the others, and equals stay in their order.
    """
    seconds = {"G1.a": 5, "G1.b": 1, "G1.c": 9, "G2.a": 2, "G2.b": 2, "G3.a": 0.5}

    order = most_news_first(seconds, guarantee=lambda name: name[:2], seconds=seconds.__getitem__)

    assert order == ["G3.a", "G1.b", "G2.a", "G2.b", "G1.a", "G1.c"]


def test_a_row_that_the_design_declines_is_the_last_of_its_guarantee() -> None:
    """It is judged quickly, and says nothing of the design that is not known."""
    declining = Durations(
        designs={"plain": Recorded(rows_s={"G1.a": 5, "G1.b": 3}, unsupported_s={"G1.c": 0})}
    )

    order = most_news_first(
        ["G1.a", "G1.b", "G1.c"],
        guarantee=lambda _: "G1",
        seconds=partial(declining.news_seconds, "broken/forgets"),
    )

    assert order == ["G1.b", "G1.a", "G1.c"]
    assert declining.seconds("plain", "G1.c") == 0
    assert declining.news_seconds("mine", "G1.c") == declining.seconds("mine", "G1.c")


def test_the_tool_takes_the_median_over_reports(shipped: Path, tmp_path: Path) -> None:
    """A first row tells the design's boot, and a row in no report stays.

    A cut last line and rows of many attempts do not count.
    """
    known = [row.id for row in promised(catalogue.load(), manifest("plain"))][:3]
    kept = durations.load().designs["plain"].rows_s[known[2]]
    reports = []
    for number, seconds in enumerate((1.0, 2.0, 9.0)):
        report = tmp_path / f"{number}.jsonl"
        first, second = (known[0], known[1]) if number else (known[1], known[0])
        again = row(known[1], 99, attempts=3)
        report.write_text(
            row(first, seconds + 4) + row(second, seconds) + again + row(known[1], 50)[:-9]
        )
        reports.append(report)

    done = made(*reports)

    assert done.returncode == 0, done.stderr
    plain = durations.load().designs["plain"]
    assert (plain.rows_s[known[0]], plain.rows_s[known[1]]) == (1.0, 5.5)
    assert (plain.rows_s[known[2]], "spark" in durations.load().designs) == (kept, True)
    assert plain.boot_s == 5.0


@pytest.mark.parametrize("text", ["{}\n", "no report\n", '{"kind": "row", "id": 1}\n', "[]\n"])
def test_the_tool_refuses_what_is_no_report(text: str, shipped: Path, tmp_path: Path) -> None:
    """One sentence, exit 4, and the file is as it was."""
    before = shipped.read_bytes()
    report = tmp_path / "report.jsonl"
    report.write_text(text)

    done = made(report)

    assert (done.returncode, done.stderr) == (4, f"{report} is no report of a run.\n")
    assert shipped.read_bytes() == before


def test_the_tool_overwrites_no_damaged_file(shipped: Path, tmp_path: Path) -> None:
    """A damaged file may be the work of a user: exit 4, and it stays as it was."""
    shipped.write_text("{")
    report = tmp_path / "report.jsonl"
    report.write_text(row("G1.a", 1))

    done = made(report)

    assert done.returncode == 4
    assert "holds no durations of rows" in done.stderr
    assert shipped.read_text() == "{"
