"""A report is written in each format that a run is asked for."""

from pathlib import Path

import pytest
from reports import summary

from upheld.cli import parser
from upheld.cli.options import REPORTS
from upheld.errors import UsageProblem
from upheld.report import RowResult, Summary, matrix
from upheld.report.folder import FILES, is_ours, locked
from upheld.report.formats import FORMATS, USUAL, Shown, write_all
from upheld.spec import catalogue
from upheld.verdicts import Verdict

VIOLATED = RowResult(
    design="mine",
    id="G22.dies-after-a-commit[ledger-exactly_once]",
    guarantee="G22",
    name="a claim",
    verdict=Verdict.VIOLATED,
    seconds=1,
)


def shown(folder: Path, *rows: RowResult) -> Shown:
    """Return the report of a run into a folder."""
    known = catalogue.load()
    end: Summary = summary(verdicts={Verdict.VIOLATED: len(rows)})
    return Shown(matrix([(list(rows), end)], known.promises), known, [folder])


def test_options_and_files_know_each_format() -> None:
    """The option's names stand apart, since the formats take a second to import."""
    assert tuple(FORMATS) == REPORTS
    assert parser().parse_args(["run"]).report == USUAL
    assert {each.file for each in FORMATS.values()} < set(FILES)


@pytest.mark.parametrize("rows", [(), (VIOLATED,)], ids=["no row", "a row"])
def test_a_folder_may_be_used_again_with_every_format_in_it(
    tmp_path: Path, rows: tuple[RowResult, ...]
) -> None:
    """A run knows the files of an older one by how they begin."""
    write_all(FORMATS, shown(tmp_path, *rows))

    assert {path.name for path in tmp_path.iterdir()} == {each.file for each in FORMATS.values()}
    with locked(tmp_path):
        pass


def test_only_what_is_asked_for_is_written(tmp_path: Path) -> None:
    """Two names make two files."""
    write_all(("markdown", "github"), shown(tmp_path, VIOLATED))

    assert {path.name for path in tmp_path.iterdir()} == {"summary.md", "annotations.txt"}


@pytest.mark.parametrize("name", [each.file for each in FORMATS.values()])
def test_a_file_of_somebody_else_is_refused(tmp_path: Path, name: str) -> None:
    """A page that somebody keeps there is not written over."""
    (tmp_path / name).write_text("<!doctype html>\n<title>mine</title>\n")

    assert not is_ours(tmp_path / name, name)
    with pytest.raises(UsageProblem, match="written by no run"), locked(tmp_path):
        pass


def test_a_hint_stands_in_every_format(tmp_path: Path) -> None:
    """The reader of one format alone learns how little an upheld row shows."""
    weak = VIOLATED.model_copy(
        update={"verdict": Verdict.UPHELD, "warnings": ["no record was set aside"]}
    )

    write_all(FORMATS, shown(tmp_path, weak))

    for name, each in FORMATS.items():
        if name == "badge":  # it has room for a count alone
            continue
        assert "no record was set aside" in (tmp_path / each.file).read_text(), each.file


@pytest.mark.parametrize("name", ["html", "markdown", "json", "junit", "github"])
def test_rows_after_a_pin_and_the_subject_stand_in_the_report(tmp_path: Path, name: str) -> None:
    """A reader sees what was judged, and what is new and was not."""
    known = catalogue.load()
    end = summary(
        subjects={"mine": "sha256:abcd"}, specs={"mine": "0.1"}, newer={"mine": ["G99.x[relay]"]}
    )

    text = FORMATS[name].text(Shown(matrix([([VIOLATED], end)], known.promises), known, [tmp_path]))

    assert "new, and not judged since mine pins spec 0.1: 1 row, G99.x" in text
    assert ("sha256:abcd" in text) == (name in {"html", "json", "junit"})
