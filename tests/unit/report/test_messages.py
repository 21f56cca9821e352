"""Cucumber Messages of a report are whole, in order, and in words of Cucumber.

`tests/browser/test_messages.py` holds them against the published schema and in Cucumber's own page.
"""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from reports import summary

from upheld.report import RowResult
from upheld.report.messages import ndjson
from upheld.spec import catalogue
from upheld.verdicts import Anomaly, Verdict

FEATURES = catalogue.load().features
ROW = "G3.whole-collection[ledger-at_least_once]"
OTHER = "G3.whole-collection[ledger-exactly_once]"
CLAIM = "a crash in the middle of an entry leaves none of its postings alone"
LOST = Anomaly(name="lost", text="k", expected="2", got="1")
SAME = {"id", "pickleStepId", "pickleId", "hookId", "testRunStartedId", "testCaseStartedId"}
SAME |= {"testCaseId", "testStepId"}


def row(verdict: Verdict = Verdict.UPHELD, name: str = ROW, **changes: Any) -> RowResult:
    """Return a row; a violated one has a card."""
    said: dict[str, Any] = {"design": "mine", "name": CLAIM, "seconds": 1.5}
    if verdict is Verdict.VIOLATED:
        said |= {"anomalies": [LOST], "again": "upheld run --only @G3"}
    guarantee = name.partition(".")[0]
    return RowResult(id=name, guarantee=guarantee, verdict=verdict, **(said | changes))


def sent(*rows: RowResult, picture: bytes = b"", **changes: Any) -> list[dict[str, Any]]:
    """Return the envelopes of a report."""
    text = ndjson(rows, summary(**changes), FEATURES, lambda _: picture)
    return [json.loads(line) for line in text.split("\n")[:-1]]


def of(kind: str, envelopes: list[dict[str, Any]]) -> list[Any]:
    """Return the messages of one kind."""
    return [each[kind] for each in envelopes if kind in each]


def named(value: Any, names: set[str]) -> Iterator[str]:
    """Go through all texts below a message that stand under one of these names."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in names:
                yield from [inner] if isinstance(inner, str) else inner
            yield from named(inner, names)
    elif isinstance(value, list):
        for inner in value:
            yield from named(inner, names)


def test_a_row_is_a_pickle_and_a_test_case_that_was_run_once() -> None:
    """Its sentences are those of its row of Examples."""
    found = sent(row(), row(name=OTHER))

    pickles = of("pickle", found)
    assert [each["name"] for each in pickles] == [CLAIM, CLAIM]
    assert pickles[0]["steps"][0]["text"] == "ledger in mode at_least_once"
    cases = of("testCase", found)
    assert [each["pickleId"] for each in cases] == [each["id"] for each in pickles]
    for kind in ("testCaseStarted", "testCaseFinished"):
        assert len(of(kind, found)) == 2
    steps = sum(len(each["testSteps"]) for each in cases)
    assert len(of("testStepStarted", found)) == len(of("testStepFinished", found)) == steps
    assert len(cases[0]["testSteps"]) == len(pickles[0]["steps"]) + 1


def test_each_id_is_there_once_and_each_reference_leads_to_one() -> None:
    """Two designs and an unknown row do not share a node."""
    rows = (row(), row(design="other"), row(name="G1.gone[ledger-exactly_once]"))

    found = sent(*rows, chosen={"mine": 2, "other": 1})

    ids = Counter(named(found, {"id"}))
    assert set(ids.values()) == {1}
    assert {*named(found, SAME | {"astNodeIds", "astNodeId"})} == set(ids)


def test_the_order_is_that_of_cucumber() -> None:
    """The features come before the run, and each row before its end."""
    kinds = [next(iter(each)) for each in sent(row())]

    assert list(dict.fromkeys(kinds)) == [
        "meta",
        "source",
        "gherkinDocument",
        "pickle",
        "hook",
        "testRunStarted",
        "attachment",
        "testCase",
        "testCaseStarted",
        "testStepStarted",
        "testStepFinished",
        "testCaseFinished",
        "testRunFinished",
    ]


@pytest.mark.parametrize(
    ("verdict", "changes", "status", "sentences", "says"),
    [
        (Verdict.UPHELD, {}, "PASSED", "PASSED", ""),
        (Verdict.VIOLATED, {}, "FAILED", "UNKNOWN", "upheld run --only @G3"),
        (Verdict.UNSUPPORTED, {"reason": "no joins"}, "SKIPPED", "SKIPPED", "no joins"),
        (Verdict.INCONCLUSIVE, {"reason": "late"}, "PENDING", "UNKNOWN", "inconclusive: late"),
        (Verdict.HARNESS_ERROR, {"reason": "a"}, "PENDING", "UNKNOWN", "harness-error: a"),
        (Verdict.VIOLATED, {"known": "#7"}, "SKIPPED", "SKIPPED", "known failure: #7"),
        (Verdict.UPHELD, {"known": "#7"}, "FAILED", "PASSED", "take it off the list"),
    ],
)
def test_a_verdict_has_the_status_that_says_the_same(
    verdict: Verdict, changes: dict[str, Any], status: str, sentences: str, says: str
) -> None:
    """A reader of the status alone is not misled, and the message has the rest."""
    found = sent(row(verdict, **changes))

    (case,) = of("testCase", found)
    (hook,) = [each for each in case["testSteps"] if "hookId" in each]
    came_to = {each["testStepId"]: each["testStepResult"] for each in of("testStepFinished", found)}
    verdict_came_to = came_to.pop(hook["id"])
    assert verdict_came_to["status"] == status
    assert says in verdict_came_to.get("message", "")
    assert verdict_came_to["duration"] == {"seconds": 1, "nanos": 500_000_000}
    assert {each["status"] for each in came_to.values()} == {sentences}
    is_first = case["testSteps"][0] is hook
    assert is_first == (status == "SKIPPED")


def test_a_card_and_its_picture_are_attached_to_the_verdict() -> None:
    """The picture is in the file itself."""
    found = sent(row(Verdict.VIOLATED), picture=b"<svg/>")

    (case,) = of("testCase", found)
    card, picture = (each for each in of("attachment", found) if "testStepId" in each)
    assert card["testStepId"] == picture["testStepId"] == case["testSteps"][-1]["id"]
    assert "expected  2" in card["body"]
    assert base64.b64decode(picture["body"]) == b"<svg/>"


def test_the_features_are_there_for_each_design_and_each_repetition() -> None:
    """A reader shows one test case of a row of Examples."""
    several = sent(row(), row(design="other"), chosen={"mine": 1, "other": 1})
    again = sent(row(), row(repetition=1), repeat=2)

    file = "features/replay/a_collection_is_one.feature"
    assert [each["uri"] for each in of("source", sent(row()))] == [file]
    assert [each["uri"] for each in of("source", several)] == [f"mine/{file}", f"other/{file}"]
    assert [each["uri"] for each in of("pickle", again)] == [
        f"repetition 1/{file}",
        f"repetition 2/{file}",
    ]


def test_a_row_of_another_version_is_shown_too() -> None:
    """Nothing that was judged is left out, and no text of a report is Gherkin."""
    hostile = "a\n  Scenario: made up\n    Given nothing"
    rows = [row(Verdict.VIOLATED, "G1.gone").model_copy(update={"name": hostile}), row()]

    found = sent(*rows)

    assert [each["uri"].rpartition("/")[2] for each in of("source", found)] == [
        "a_collection_is_one.feature",
        "unknown.feature",
    ]
    assert len(of("pickle", found)) == len(of("testCaseStarted", found)) == 2
    assert "G1.gone: a\\n  Scenario: made up" in of("pickle", found)[1]["name"]


@pytest.mark.parametrize(("code", "success"), [(0, True), (1, False), (2, False)])
def test_the_run_has_passed_if_its_exit_code_says_so(code: int, success: bool) -> None:
    """Its times are those of the summary."""
    found = sent(row(), exit_code=code)

    (ended,) = of("testRunFinished", found)
    (began,) = of("testRunStarted", found)
    assert ended["success"] is success
    assert ended["timestamp"]["seconds"] - began["timestamp"]["seconds"] == 2


@pytest.mark.parametrize("ended", ["", "yesterday", "9999-12-31T23:59:59+00:00", "0001-01-01"])
@pytest.mark.parametrize("seconds", [0.0, 1e300, float("inf"), float("nan"), -5.0])
def test_a_report_may_name_no_time_of_this_world(ended: str, seconds: float) -> None:
    """Reports before format 7 have no date, and a report may come from anywhere."""
    found = sent(row(seconds=seconds), ended=ended, seconds=seconds)

    for each in [*of("testRunStarted", found), *of("testRunFinished", found)]:
        assert each["timestamp"]["seconds"] >= 0


def test_a_report_without_a_date_begins_at_zero() -> None:
    """Cucumber's messages have no way to say that nothing is known."""
    (began,) = of("testRunStarted", sent(row(), ended=""))
    assert began["timestamp"] == {"seconds": 0, "nanos": 0}
