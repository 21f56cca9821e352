"""A release that starts after the other one leaves a mark with its topics."""

from types import SimpleNamespace
from typing import Any

import pytest

from upheld.history import History, events
from upheld.history.marks import Happening
from upheld.nemesis import releases
from upheld.trial.instances import Launch
from upheld.trial.recorder import Recorder
from upheld.verdicts import NotOffered


class Broker:
    """A broker on which each start that is not refused makes a topic."""

    def __init__(self) -> None:
        self.recorder = Recorder(History(), time_scale=1.0)
        self.topics = {"trial-input": 4}
        self.refuses = 0  # how many of the next starts
        self.let_go: list[str] = []
        application: Any = SimpleNamespace(
            name="ledger", event=SimpleNamespace(topics={"input": "trial-input"})
        )
        self.application = application
        self.trial: Any = SimpleNamespace(
            recorder=self.recorder,
            mark=self.recorder.mark,
            application_id="trial",
            applications={"ledger": application},
            manifest=SimpleNamespace(name="mine"),
            reading=SimpleNamespace(sizes=lambda _: dict(self.topics)),
            instances=SimpleNamespace(
                start=self.start, let_go=lambda _, name: self.let_go.append(name)
            ),
        )

    def start(self, _: object, name: str, launch: Launch) -> object | None:
        """Start an instance as a trial does."""
        assert launch.release
        self.recorder.releases["ledger", name] = launch.release
        if self.refuses:
            self.refuses -= 1
            return None
        self.topics[f"trial-{launch.release}-changelog"] = 1
        return object()

    @property
    def marks(self) -> list[events.Mark]:
        """Return the marks so far."""
        return list(self.recorder.history.of(events.Mark))


def test_topics_before_and_after() -> None:
    """The first release leaves no mark; the second one says which topics are new."""
    broker = Broker()
    releases.take_over(broker.trial, broker.application, "earlier")
    assert not broker.marks

    releases.take_over(broker.trial, broker.application, "later")

    (mark,) = broker.marks
    assert mark.happening is Happening.RELEASE_STARTED
    assert mark.fault.endswith("and makes trial-later-changelog")
    assert mark.evidence == {
        "refused": False,
        "topics_before": {"trial-earlier-changelog": 1},
        "topics_after": {"trial-earlier-changelog": 1, "trial-later-changelog": 1},
    }


def test_nothing_to_roll_back() -> None:
    """A release that refuses leaves nothing to be judged, and its instance is let go."""
    broker = Broker()
    releases.take_over(broker.trial, broker.application, "earlier")
    broker.refuses = 2

    with pytest.raises(NotOffered, match="the later release of mine refuses to start"):
        releases.take_over(broker.trial, broker.application, "later")

    assert broker.let_go == ["a", "a"]
    assert broker.marks[0].evidence["refused"] is True


def test_a_failure_by_accident() -> None:
    """A release that starts at the second try has not refused."""
    broker = Broker()
    releases.take_over(broker.trial, broker.application, "earlier")
    broker.refuses = 1

    releases.take_over(broker.trial, broker.application, "later")

    assert broker.let_go == ["a"]
    assert broker.marks[0].evidence["refused"] is False


def test_the_first_release_is_tried_once() -> None:
    """It follows nobody, so nothing explains why it does not start."""
    broker = Broker()
    broker.refuses = 1

    assert not releases.start(broker.trial, broker.application, Launch(release="earlier"))

    assert not broker.refuses
    assert not broker.let_go


def test_an_instance_says_its_release() -> None:
    """Each event of an instance has the release that it was started as."""
    broker = Broker()
    releases.take_over(broker.trial, broker.application, "earlier")
    releases.join(broker.trial, broker.application, "b")

    broker.recorder.happened(broker.application, "a", "stopped")
    broker.recorder.happened(broker.application, "b", "stopped")

    found = broker.recorder.history.of(events.Instance)
    assert [each.release for each in found] == ["earlier", "later"]
