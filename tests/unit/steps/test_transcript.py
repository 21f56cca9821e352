"""No row asks something else of the harness unnoticed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest
from goldens import TRANSCRIPT, stored
from transcripts import StubTrial, differences, normal, transcript

from upheld.judging.claims import claim_of
from upheld.spec import catalogue
from upheld.steps.deployment import configured
from upheld.steps.scene import Scene
from upheld.trial.trial import Trial
from upheld.verdicts import HarnessError

ARRIVALS = re.compile(r"records keep arriving|the arrivals end")
CLAIMED = re.compile(r"trial\.claim\('(?P<check>[\w-]+)'")


def test_each_row_makes_the_calls_as_stored() -> None:
    """Every row asks the same; `python tools/golden.py` writes an intended change."""
    found = list(differences(stored(TRANSCRIPT), transcript()))

    assert not found, "\n".join(found)


def test_a_difference_names_the_row_and_its_first_other_call() -> None:
    """A call that is other, missing or new is shown with the one that was there."""
    was = {"A[x]": ["start", "drain"], "B[x]": ["start"], "C[x]": ["start"]}
    now = {"A[x]": ["start", "stop"], "B[x]": ["start", "stop"], "D[x]": ["start"]}

    assert list(differences(was, now)) == [
        "A[x], call 2: was drain, is stop",
        "B[x], call 2: was the end, is stop",
        "C[x] is gone",
        "D[x] is new",
    ]


def test_waits_that_follow_each_other_are_one() -> None:
    """Five seconds and two are seven; those of another application, or later, are not."""
    calls = [f"trial.watch({each} ms)" for each in ("a,5000", "a,2000", "b,1", "a,1")]

    assert normal(calls) == [f"trial.watch({each} ms)" for each in ("a,7000", "b,1", "a,1")]


def test_each_sentence_calls_the_check_of_its_claim() -> None:
    """A row's calls claim the checks of its sentences by the table, in their order."""
    calls = transcript()
    for scenario in catalogue.load().scenarios:
        for row in scenario.rows:
            said = [claim.check for step in row.steps if (claim := claim_of(step.text))]
            called = [found["check"] for call in calls[row.id] if (found := CLAIMED.match(call))]

            assert list(dict.fromkeys(called)) == list(dict.fromkeys(said)), row.id


def test_arrivals_that_begin_end() -> None:
    """In each row the lines that begin and end arrivals take turns."""
    for scenario in catalogue.load().scenarios:
        for row in scenario.rows:
            lines = [step.text for step in row.steps]
            turns = [line == "the arrivals end" for line in lines if ARRIVALS.match(line)]

            assert turns == [False, True] * (len(turns) // 2), row.id


def test_a_description_that_comes_too_late_is_refused() -> None:
    """A Given line after the first use of the application would be without effect."""
    scene = Scene(cast(Trial, StubTrial([], frozenset())))
    scene.describe(program="ledger")
    scene.subjects()

    with pytest.raises(HarnessError, match="comes too late"):
        scene.describe(workers=2)


def test_an_attempt_that_ends_early_ends_its_arrivals() -> None:
    """The thread that writes them ends, and nothing more is read."""
    trial = StubTrial([], frozenset())
    ended = list[str]()

    @contextmanager
    def feeding(_application: object, _apart_s: float) -> Iterator[None]:
        try:
            yield
        finally:
            ended.append("the thread")
        ended.append("the reading")

    trial.__dict__["feeding"] = feeding
    scene = Scene(cast(Trial, trial))
    scene.describe(program="ledger")
    scene.begin_arrivals()

    scene.close()
    scene.close()

    assert ended == ["the thread"]


@pytest.mark.parametrize(
    ("datatable", "words"),
    [
        ([["commit interval", "5"]], "5 is no duration"),
        ([["comit interval", "5 ms"]], "comit interval is no setting; there are partitions"),
        ([["segments of its table", "5 ms"]], "a table has segments of 1000 ms"),
    ],
)
def test_a_setting_that_is_none_is_refused(datatable: list[list[str]], words: str) -> None:
    """A name or a value that says nothing to the harness ends the attempt."""
    scene = Scene(cast(Trial, StubTrial([], frozenset())))

    with pytest.raises(HarnessError, match=words):
        configured(scene, datatable)
