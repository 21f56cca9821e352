"""No row asks something else of the harness unnoticed."""

import re

from goldens import TRANSCRIPT, stored
from transcripts import differences, normal, transcript

from upheld.judging.claims import claim_of
from upheld.spec import catalogue

CLAIMED = re.compile(r"trial\.claim\('(?P<check>[\w-]+)'")


def test_each_row_makes_the_calls_as_stored() -> None:
    """Every row asks what it asked; `python tools/golden.py` writes a change that was meant."""
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
    """Five seconds and then two are seven; those of another application, or later, are not."""
    calls = [f"trial.watch({each} ms)" for each in ("a,5000", "a,2000", "b,1", "a,1")]

    assert normal(calls) == [f"trial.watch({each} ms)" for each in ("a,7000", "b,1", "a,1")]


def test_each_sentence_calls_the_check_of_its_claim() -> None:
    """A row's calls claim what the table of claims says of its sentences, in their order."""
    calls = transcript()
    for scenario in catalogue.load().scenarios:
        for row in scenario.rows:
            said = [claim.check for step in row.steps if (claim := claim_of(step.text))]
            called = [found["check"] for call in calls[row.id] if (found := CLAIMED.match(call))]

            assert list(dict.fromkeys(called)) == list(dict.fromkeys(said)), row.id
