"""An attempt that ended as stuck is looked at once more."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from histories import Story
from stories import balances

from upheld.history.events import Offsets
from upheld.trial import ending
from upheld.trial.ending import Ending
from upheld.verdicts import Anomaly, Violated

STUCK = Violated.one("stuck", "it rests")


class World:
    """Probes and a workload that know a story."""

    def __init__(self, story: Story, committed: Offsets | None, *, decided: bool = True) -> None:
        self.committed = committed
        self.decided = decided
        self.failure: Exception | None = None
        probes: Any = SimpleNamespace(
            observe=lambda _: None,
            all_decided=lambda _: True,
            offsets=lambda _, **__: self.committed,
        )
        workload: Any = SimpleNamespace(
            is_decided=lambda _: self.decided, look_at_input=self._look_at_input
        )
        recorder: Any = SimpleNamespace(history=story.history)
        self.ending = Ending(recorder, probes, workload)
        fed = SimpleNamespace(is_fed=False, ends={"app-entries-0": 4})
        self.application: Any = SimpleNamespace(
            name="app", progress_group=None if committed is None else "group", input=fed
        )

    def _look_at_input(self, _: object) -> None:
        if self.failure:
            raise self.failure

    def judged(self, ended: Violated = STUCK) -> list[Anomaly]:
        """Return the anomalies after the look."""
        return self.ending.judged(ended, [self.application]).anomalies


def test_a_fault_comes_first() -> None:
    """A fault in the log is worse than that the design does not go on."""
    found = World(balances("exactly_once", "00"), {"app-entries-0": 1}).judged()

    assert [anomaly.name for anomaly in found] == ["duplicated", "stuck"]


def test_the_key_is_named() -> None:
    """Without a fault the key that waits is named."""
    (anomaly,) = World(balances("exactly_once", "0"), {"app-entries-0": 1}).judged()

    assert (anomaly.name, anomaly.key, anomaly.source) == ("stuck", "ada", "app-entries-0@3")


def test_only_an_offset_is_wrong() -> None:
    """If every last state is visible, the committed offset is what rests."""
    (anomaly,) = World(balances("exactly_once", "0123"), {"app-entries-0": 3}).judged()

    assert anomaly.name == "stuck"
    assert anomaly.text == (
        "it rests; every last state is visible, and only committed offsets are behind: "
        "app-entries-0 at 3 of 4"
    )


@pytest.mark.parametrize("committed", [None, {"app-entries-0": 4}])
def test_nothing_is_due(committed: Offsets | None) -> None:
    """If all is there, the sentence of the harness stands."""
    assert World(balances("exactly_once", "0123"), committed).judged() == STUCK.anomalies


def test_what_was_passed_over_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """If progress is in no group, outputs of later input show it."""
    lost = Anomaly(name="lost", text="it was passed over")
    monkeypatch.setattr(ending, "passed_over", lambda *_: [lost])
    story = balances("at_least_once", "0")

    assert World(story, None).judged() == [lost]
    assert [each.name for each in World(story, {"app-entries-0": 1}).judged()] == ["stuck"]


def test_the_log_cannot_be_read() -> None:
    """The violation stands as it was where input or outputs are not whole."""
    story = balances("exactly_once", "00")
    away = World(story, {"app-entries-0": 1})
    away.failure = KafkaException(KafkaError(KafkaError._TRANSPORT))

    assert away.judged() == STUCK.anomalies
    assert World(story, None, decided=False).judged() == STUCK.anomalies


def test_a_check_has_judged() -> None:
    """A violation that a check has found stands as it is."""
    ended = Violated([Anomaly(name="stuck", text="it named no record")])

    assert World(balances("exactly_once", "00"), None).judged(ended) == ended.anomalies
