"""Reports stand side by side: as a matrix, as Markdown, and as annotations."""

import re
from typing import Any

import pytest
from reports import summary

from upheld.report import RowResult, Summary
from upheld.report.annotations import annotations
from upheld.report.markdown import CARDS, markdown
from upheld.report.matrix import Matrix, matrix
from upheld.verdicts import Anomaly, Verdict

PROMISES = {"G1": "Sums are | right.", "G2": "Order is kept."}
UPHELD, VIOLATED = Verdict.UPHELD, Verdict.VIOLATED
HOSTILE = "<script>alert(1)</script> | `x` ```` **b**"


def row(verdict: Verdict, guarantee: str = "G1", **changes: Any) -> RowResult:
    """Return a row of that verdict."""
    said = {"design": "mine", "again": "upheld run"} | changes
    found = [Anomaly(name="lost", text=HOSTILE)] if verdict is VIOLATED else []
    return RowResult(
        id=f"{guarantee}.a[relay-exactly_once]",
        guarantee=guarantee,
        name="x",
        verdict=verdict,
        anomalies=found,
        seconds=1,
        **said,
    )


def report(*rows: RowResult, version: str = "1") -> tuple[list[RowResult], Summary]:
    """Return the rows and a summary of them."""
    designs = dict.fromkeys(each.design for each in rows)
    return list(rows), summary(design_versions=dict.fromkeys(designs, version))


def of(*reports: tuple[list[RowResult], Summary]) -> Matrix:
    """Return the matrix of reports."""
    return matrix(reports, PROMISES)


def test_several_versions_of_a_design_are_columns() -> None:
    """A difference comes first; a cell is the worst verdict, with its share of rows."""
    before = report(row(UPHELD), row(UPHELD, "G2"), row(UPHELD, "G2"))
    after = report(row(UPHELD), row(UPHELD, "G2"), row(VIOLATED, "G2"), version="2")

    found = of(before, after)

    assert [str(column) for column in found.columns] == ["mine 1", "mine 2"]
    cells = {line.guarantee: [str(cell) for cell in line.cells] for line in found.lines}
    assert list(cells) == ["G2", "G1"]
    assert cells["G2"] == ["upheld 2/2", "violated 1/2"]
    assert [line.differs for line in found.lines] == [True, False]


def test_one_report_keeps_the_order_of_the_catalogue() -> None:
    """Its designs are columns, and one of them may have judged less."""
    found = of(report(row(UPHELD), row(UPHELD, "G2"), row(VIOLATED, "G2", design="other")))

    assert [line.guarantee for line in found.lines] == ["G1", "G2"]
    assert found.lines[0].cells[1] is None


def test_a_guarantee_that_this_version_does_not_know_is_shown() -> None:
    """A report of another version loses no row."""
    assert [line.guarantee for line in of(report(row(UPHELD, "G999"))).lines] == ["G999"]


def test_text_of_designs_is_no_markdown_and_no_html() -> None:
    """A bar would end a cell, a run of backticks the card, and a tag would be run."""
    said = markdown(of(report(row(VIOLATED, design=HOSTILE))))

    (head,) = [line for line in said.splitlines() if line.startswith("| guarantee")]
    cells = re.split(r"(?<!\\)\|", head)
    fence = re.search(r"^(`+)text$", said, re.MULTILINE)
    outside = re.sub(r"^(`+)text$.*?^\1$", "", said, flags=re.MULTILINE | re.DOTALL)
    assert len(cells) == 5
    assert fence
    assert len(fence[1]) == 5
    assert not re.search(r"(?<!\\)<script", outside)
    assert said.count("VIOLATED  G1.a[relay-exactly_once]") == 1


def test_markdown_counts_what_it_leaves_out() -> None:
    """The summary of a job is cut where it is long."""
    said = markdown(of(report(*[row(VIOLATED)] * (CARDS + 2))))

    assert said.count("<details>") == CARDS
    assert said.endswith("2 more rows failed; `report.jsonl` has them.\n")


@pytest.mark.parametrize(
    ("judged", "level"),
    [
        (row(VIOLATED), "error"),
        (row(UPHELD, known="https://example.org/1"), "error"),
        (row(Verdict.HARNESS_ERROR), "error"),
        (row(Verdict.INCONCLUSIVE), "warning"),
    ],
    ids=lambda value: value.verdict.value if isinstance(value, RowResult) else "",
)
def test_what_is_not_as_it_should_be_has_an_annotation(judged: RowResult, level: str) -> None:
    """It is one line, whatever the card holds, and no text of a design ends its title."""
    (line,) = annotations([judged])

    head, _, card = line.partition("::")[2].partition("::")
    assert head.startswith(f"{level} title={judged.verdict} G1.a[relay-exactly_once] mine")
    assert "\n" not in line
    assert "%0A" in card


def test_what_is_as_it_should_be_has_none() -> None:
    """A passing gate says nothing."""
    known = row(VIOLATED, known="https://example.org/1")
    assert list(annotations([row(UPHELD), row(Verdict.UNSUPPORTED), known])) == []


def test_a_title_ends_where_it_should() -> None:
    """Colons and commas of a name would end it, or begin another property."""
    (line,) = annotations([row(VIOLATED, design="a::b,file=c%")])

    assert "a%3A%3Ab%2Cfile=c%25::" in line
