"""`upheld report` shows reports in the format that is asked for."""

import json
from pathlib import Path

import pytest
from reports import summary

from upheld.cli import main
from upheld.report import RowResult, Writer
from upheld.verdicts import Verdict


def written(folder: Path, verdict: Verdict) -> Path:
    """Write a report of one row, and return its folder."""
    folder.mkdir()
    writer = Writer(folder)
    row = RowResult(
        design="mine",
        id="G22.dies-after-a-commit[ledger-exactly_once]",
        guarantee="G22",
        name="a claim",
        verdict=verdict,
        again="upheld run" if verdict is Verdict.VIOLATED else "",
        seconds=1,
    )
    writer.write(row)
    writer.write(summary(verdicts={verdict: 1}))
    writer.close()
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, str]:
    """Two runs of one design; the second is violated."""
    before = written(tmp_path / "before", Verdict.UPHELD)
    return str(before), str(written(tmp_path / "after", Verdict.VIOLATED))


@pytest.mark.parametrize(
    ("option", "begins"),
    [
        ("--markdown", "# Upheld: 1 violated, 1 upheld"),
        ("--github", "::error title=violated G22"),
        ("--junit", "<?xml"),
        ("--json", "{"),
    ],
)
def test_each_format_is_printed(
    runs: tuple[str, str], capsys: pytest.CaptureFixture[str], option: str, begins: str
) -> None:
    """The exit code says that the reports were shown, whatever they say."""
    assert main(["report", *runs, option]) == 0
    assert capsys.readouterr().out.startswith(begins)


def test_messages_are_of_one_run(runs: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """They are printed, an envelope a line; of two reports that is refused."""
    assert main(["report", runs[0], "--messages"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[0])["meta"]["implementation"] == {"name": "upheld", "version": "0.1.0"}

    assert main(["report", *runs, "--messages"]) == 4
    assert "name one report" in capsys.readouterr().err


def test_json_has_the_verdicts_by_column(
    runs: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A guarantee says whether the columns differ."""
    main(["report", *runs, "--json"])

    (line,) = json.loads(capsys.readouterr().out)["guarantees"]
    assert (line["id"], line["differs"]) == ("G22", True)
    assert line["verdicts"] == [{"upheld": 1}, {"violated": 1}]


def test_without_a_format_it_is_a_table(
    runs: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each run has a column, with its version and its date."""
    main(["report", *runs])

    said = capsys.readouterr().out
    assert said.count("mine 3") == 2
    assert "violated 1/1" in said


def test_a_page_lies_beside_its_report(
    runs: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The scenario stands on it as its feature has it."""
    assert main(["report", runs[0], "--html"]) == 0

    page = Path(runs[0]) / "index.html"
    assert capsys.readouterr().out == f"{page}\n"
    assert "When the application starts" in page.read_text(encoding="utf-8")


def test_of_several_reports_a_page_needs_a_name(
    runs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no folder that would be the right one."""
    assert main(["report", *runs, "--html"]) == 4
    assert main(["report", *runs, "--html", str(tmp_path / "both.html")]) == 0
    assert capsys.readouterr().err.endswith("--html needs the name of a file.\n")


def test_a_page_is_written_through_no_link(
    runs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file that the link leads to stays as it is."""
    foreign = tmp_path / "foreign"
    foreign.write_text("kept")
    (Path(runs[0]) / "index.html").symlink_to(foreign)

    assert main(["report", runs[0], "--html"]) == 4
    assert "is a link" in capsys.readouterr().err
    assert foreign.read_text() == "kept"


def test_a_page_is_written_over_a_page_of_a_report_alone(
    runs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is made again as often as asked, and no other file is lost to it."""
    mine = tmp_path / "mine.html"
    mine.write_text("<!doctype html>")

    assert main(["report", runs[0], "--html", str(mine)]) == 4
    assert "is no page of a report" in capsys.readouterr().err
    assert mine.read_text() == "<!doctype html>"
    assert [main(["report", runs[0], "--html"]) for _ in range(2)] == [0, 0]


def test_a_page_without_a_place_is_one_sentence(
    runs: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is not there is none of the report's faults."""
    assert main(["report", runs[0], "--html", "/nowhere/at/all.html"]) == 3
    assert "cannot be written: No such file" in capsys.readouterr().err
