"""`junit.xml` shows a CI system what each row came to, and why."""

from typing import Any

import pytest
from junitparser import JUnitXml, TestCase
from reports import summary

from upheld.report import RowResult, junit
from upheld.verdicts import Anomaly, Verdict

LINK = "https://example.org/issues/1"
LOST = Anomaly(name="lost", text="k shows 1, and 2 was due", expected="2", got="1")


def row(verdict: Verdict, **changes: Any) -> RowResult:
    """Return a row of that verdict, with its command if it is not as it should be."""
    said: dict[str, Any] = {"reason": "" if verdict is Verdict.UPHELD else "a reason"}
    if verdict is Verdict.VIOLATED:
        said = {"anomalies": [LOST], "again": "upheld run --only @G1.a"}
    return RowResult(
        design="mine",
        id="G1.a[ledger-exactly_once]",
        guarantee="G1",
        name="a promise",
        verdict=verdict,
        seconds=1.5,
        **(said | changes),
    )


def written(*rows: RowResult, **changes: Any) -> JUnitXml:
    """Write the file, and return it as a reader of such files has it."""
    return JUnitXml.fromstring(junit.text([(list(rows), summary(**changes))], []).encode())


def only_case(found: JUnitXml) -> TestCase:
    """Return the only case of the only suite."""
    ((case,),) = (list(suite) for suite in found)
    return case


@pytest.mark.parametrize(
    ("judged", "kind", "message"),
    [
        (row(Verdict.VIOLATED), "failure", "lost: k shows 1, and 2 was due"),
        (row(Verdict.HARNESS_ERROR), "error", "a reason"),
        (row(Verdict.INCONCLUSIVE), "error", "a reason"),
        (row(Verdict.UNSUPPORTED), "skipped", "a reason"),
        (row(Verdict.VIOLATED, known=LINK), "skipped", f"known failure: {LINK}"),
        (
            row(Verdict.UPHELD, known=LINK),
            "failure",
            f"the known failure {LINK} is upheld: take it off the list",
        ),
    ],
    ids=lambda value: value.verdict.value if isinstance(value, RowResult) else "",
)
def test_each_verdict_but_upheld_has_its_element(
    judged: RowResult, kind: str, message: str
) -> None:
    """A known failure fails no gate, unless it is upheld."""
    found = written(judged)

    case = only_case(found)
    (result,) = case.result
    assert (result._elem.tag, result.message) == (kind, message)
    counts = {"failure": found.failures, "error": found.errors, "skipped": found.skipped}
    assert counts == dict.fromkeys(counts, 0) | {kind: 1}


def test_a_passed_case_has_no_element() -> None:
    """It is named as its row, in the class of its guarantee."""
    found = written(row(Verdict.UPHELD))

    case = only_case(found)
    assert (case.classname, case.name, case.time) == ("G1", "G1.a[ledger-exactly_once]", 1.5)
    assert (found.tests, case.result) == (1, [])


def test_a_failure_holds_the_card() -> None:
    """A reader of the CI system needs no other file to see it and to repeat it."""
    (failure,) = only_case(written(row(Verdict.VIOLATED))).result

    assert failure.text.startswith("VIOLATED  G1.a[ledger-exactly_once]  mine")
    assert failure.text.endswith("again     upheld run --only @G1.a")


def test_a_suite_says_what_was_judged_on_what() -> None:
    """The properties are those that a second run needs."""
    (suite,) = written(row(Verdict.UPHELD))

    assert {each.name: each.value for each in suite.properties()} == {
        "seed": "7",
        "broker": "embedded 4.3.1",
        "upheld": "0.1.0",
        "depth": "core",
        "version": "3",
        "subject": "sha256:ab",
    }


def test_repetitions_have_names_of_their_own() -> None:
    """Two cases of one name would be one for many readers."""
    rows = [row(Verdict.UPHELD, repetition=number) for number in range(2)]

    (suite,) = written(*rows, repeat=2)

    assert [case.name.rpartition(" ")[2] for case in suite] == ["#1", "#2"]


def test_what_failed_outside_of_all_rows_is_an_error() -> None:
    """The last line of a traceback is its message."""
    written = junit.text([([], summary())], ["Traceback\n  somewhere\nOSError: no space"])

    found = JUnitXml.fromstring(written.encode())
    *_, suite = found
    (case,) = suite
    assert (found.errors, case.result[0].message) == (1, "OSError: no space")
