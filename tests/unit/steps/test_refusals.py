"""A sentence that says more than its step does is refused, and nothing is done."""

from collections.abc import Callable
from typing import cast

import pytest
from transcripts import StubTrial

from upheld.steps import claims, crashes, deployment, environment, workload
from upheld.steps.scene import Scene
from upheld.trial.trial import Trial
from upheld.verdicts import HarnessError


def scene(program: str = "ledger") -> Scene:
    """Return the scene of an application that was described, and not used."""
    made = Scene(cast(Trial, StubTrial([], frozenset())))
    made.describe(program=program, mode="exactly_once")
    return made


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("disk size", "64 GB", "64 GB is no number of MB"),
        ("batch size", "50 ms", "50 ms is no number of records"),
        ("batch size", "50", "50 is no number of records"),
        ("commit interval", "5 records", "5 records is no duration"),
        ("segments of its table", "2 seconds", "a table has segments of 1000 ms"),
        ("size", "1", "size is no setting"),
        ("group protocol", "kafka", "kafka is no protocol of groups; there are classic, consumer"),
    ],
)
def test_a_setting_has_its_own_unit(name: str, value: str, said: str) -> None:
    """A number with another unit is not taken for the right one."""
    with pytest.raises(HarnessError, match=said):
        deployment.configured(scene(), [[name, value]])


def feed(program: str, kind: str, place: str = "its input") -> None:
    """Write a workload of that kind."""
    workload.are_in_its_input(scene(program), 10, kind, 2, place)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: feed("ledger", "names"), "ledger reads no names"),
        (lambda: feed("batcher", "aborted records"), "batcher reads no aborted records"),
        (lambda: feed("pulse", "rehomed records"), "pulse reads no rehomed records"),
        (lambda: feed("ledger", "records", "its second input"), "no second one"),
        (
            lambda: workload.flawed(scene(), "that is no JSON", "the relay's input"),
            "written to the application alone",
        ),
        (lambda: environment.clock_jumps(scene(), 500, "forward"), "by whole seconds"),
        (lambda: crashes.arrives_late(scene(), "EndTxn"), "no EndTxn of ledger is on its way"),
        (lambda: claims.matches(scene(), "at_least_once"), "the mode is exactly_once"),
        (lambda: claims.dead_letters_match(scene(), "at_least_once"), "the mode is exactly_once"),
    ],
)
def test_a_word_that_the_step_would_ignore_is_refused(act: Callable[[], None], said: str) -> None:
    """A kind, a place, a request or a mode means what it says."""
    with pytest.raises(HarnessError, match=said):
        act()
