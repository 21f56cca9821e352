"""A moment or a request that never comes ends an attempt, and says why."""

from collections.abc import Callable, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from histories import Story
from kio.schema.errors import ErrorCode
from stories import balances

from upheld.history.marks import Happening
from upheld.injectors.proxy.rules import Fault
from upheld.nemesis import moments, requests
from upheld.nemesis.moments import Moment, pause_at
from upheld.nemesis.requests import Strike, strike_at
from upheld.verdicts import AdapterBreach, MarkMissed, NotOffered, Outcome, Violated


class World:
    """A trial of which a test writes what is seen."""

    def __init__(self, story: Story | None = None) -> None:
        self.story = story or balances("exactly_once", "")
        self.drained = True
        self.sent: list[str] = ["produce"]
        self.waves = 0
        self.resumed = 0
        instance = SimpleNamespace(pause=lambda: [1], resume=self._resume)
        self.application: Any = SimpleNamespace(
            name="app",
            mode=self.story.history.application("app").mode,
            running={"a": instance},
            input=SimpleNamespace(is_fed=False, totals={"entries": 1}),
            door=lambda: "door",
        )
        exchanges = [SimpleNamespace(api=api, door="door") for api in self.sent]
        proxy = SimpleNamespace(arm=lambda _: None, exchanges=exchanges)
        rig = SimpleNamespace(
            progress_s=0.3,
            time_scale=1.0,
            pool=lambda _: SimpleNamespace(prepare=lambda: None),
            open_proxy=lambda: proxy,
        )
        self.end = 0
        self.trial: Any = SimpleNamespace(
            rig=rig,
            manifest=SimpleNamespace(name="mine"),
            history=self.story.history,
            probes=SimpleNamespace(ends=lambda _: ({0: 0}, self._end()), observe=lambda _: None),
            monitor=SimpleNamespace(tick=lambda _: None, is_drained=lambda _, **__: self.drained),
            workload=SimpleNamespace(feed_more=self._feed_more),
        )

    def _end(self) -> dict[int, int]:
        self.end += 1
        return {0: self.end}

    def _resume(self) -> None:
        self.resumed += 1

    def _feed_more(self, _: object) -> None:
        self.waves += 1

    def paused(self, happening: Happening, *, glimpse: bool) -> Outcome:
        """Wait for a moment that has no evidence; return what ends the attempt."""
        with pytest.raises(Outcome) as ended:
            pause_at(self.trial, self.application, Moment(happening, lambda: glimpse, lambda: None))
        return ended.value

    def struck(
        self, request: str, fault: Fault = "hold", error: ErrorCode = ErrorCode.none
    ) -> Outcome:
        """Wait for a request that never comes; return what ends the attempt."""
        strike = Strike(fault, "before", request, error)
        with pytest.raises(Outcome) as ended:
            strike_at(self.trial, self.application, strike)
        return ended.value


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "DRAINED_S", 0.02)
    monkeypatch.setattr(requests, "LOOK_S", 0.02)


def bare(mode: str = "exactly_once") -> Story:
    """Tell a ledger whose output stands outside of any transaction."""
    story = balances(mode, "0")
    story.batch(0, 0, 7, transactional=False)
    return story


def test_a_moment_that_seems_to_stay() -> None:
    """All may be drained, though each glimpse says that the moment has come."""
    world = World()
    ended = world.paused(Happening.EVENTS_WAITING, glimpse=True)

    assert isinstance(ended, MarkMissed)
    assert "drained its input" in str(ended)
    assert world.waves == moments.WAVES
    assert world.resumed > moments.WAVES


@pytest.mark.parametrize("drained", [True, False])
def test_outputs_outside_of_transactions(*, drained: bool) -> None:
    """Under exactly_once they are a violation at once, and no missed moment."""
    world = World(bare())
    world.drained = drained
    ended = world.paused(Happening.TRANSACTION_OPEN, glimpse=False)

    assert isinstance(ended, Violated)
    assert [anomaly.name for anomaly in ended.anomalies] == ["uncommitted-visible"]
    assert world.waves <= 1


@pytest.mark.parametrize(
    ("story", "happening"),
    [
        (bare("at_least_once"), Happening.TRANSACTION_OPEN),
        (bare(), Happening.AFTER_COMMIT),
    ],
)
def test_no_transaction_is_waited_for(story: Story, happening: Happening) -> None:
    """Under at_least_once, or at another moment, the moment was missed."""
    assert isinstance(World(story).paused(happening, glimpse=False), MarkMissed)


@pytest.mark.parametrize("drained", [True, False])
def test_a_request_that_is_never_sent(*, drained: bool) -> None:
    """The first attempt knows it, though the input is never drained."""
    world = World()
    world.drained = drained
    ended = world.struck("FindCoordinator")

    assert isinstance(ended, NotOffered)
    assert str(ended) == "the clients of mine send no FindCoordinator"


def test_nothing_moves() -> None:
    """A design that shows no output may still send the request in another attempt."""
    world = World()
    world.drained = False
    world.trial.probes.ends = lambda _: ({0: 0}, {0: 0})

    assert isinstance(world.struck("FindCoordinator"), MarkMissed)


def test_a_request_that_is_sent_no_more() -> None:
    """A request that came before is tried again."""
    assert isinstance(World().struck("Produce"), MarkMissed)


def test_a_request_that_no_broker_refuses_so() -> None:
    """The reason is not that the request was never sent again."""
    world = World()
    proxy = world.trial.rig.open_proxy()
    proxy.arm = lambda rule: setattr(rule, "passed_over", 3)
    ended = world.struck("Produce", fault="refuse", error=ErrorCode.not_enough_replicas)

    assert isinstance(ended, MarkMissed)
    assert (
        str(ended) == "a broker gives NOT_ENOUGH_REPLICAS to none of the 3 Produce requests of mine"
    )


def test_no_transaction_is_ended() -> None:
    """A design that ends no transaction, and writes outside of any, is no exception."""
    assert isinstance(World(bare()).struck("EndTxn"), Violated)
    assert isinstance(World(bare("at_least_once")).struck("EndTxn"), NotOffered)


class Barred:
    """A trial whose instance has some connections, and asks for more in an outage."""

    def __init__(self, connections: int, asked: int, exchanges: Sequence[str]) -> None:
        self.marks = list[dict[str, object]]()
        seen = [SimpleNamespace(api=api, door="door") for api in exchanges]
        looks = count()
        proxy = SimpleNamespace(bar=lambda _: connections, unbar=lambda _: asked, exchanges=[])

        def wait(_: float, reached: Callable[[], bool]) -> bool:
            if next(looks) == 0 and not reached():
                proxy.exchanges = seen
            return reached()

        self.trial: Any = SimpleNamespace(
            rig=SimpleNamespace(progress_s=1, open_proxy=lambda: proxy),
            recorder=SimpleNamespace(wait=wait),
            probes=SimpleNamespace(weigh=lambda _: None),
            manifest=SimpleNamespace(name="mine"),
            mark=lambda _, **evidence: self.marks.append(evidence),
        )

    def out_of_reach(self) -> None:
        """Keep it from the broker."""
        application: Any = SimpleNamespace(door=lambda: "door")
        with requests.out_of_reach(self.trial, application):
            pass


@pytest.mark.parametrize(("connections", "asked"), [(3, 0), (0, 2)])
def test_an_outage_is_met_with_or_without_a_connection(connections: int, asked: int) -> None:
    """An instance between two batches may have none, and asks for one later."""
    barred = Barred(connections, asked, ["metadata"])

    barred.out_of_reach()

    assert barred.marks == [{"connections": connections, "turned_away": asked}]


def test_an_outage_that_nobody_noticed() -> None:
    """It did not happen, so the attempt is made again."""
    with pytest.raises(MarkMissed, match="asked no broker"):
        Barred(0, 0, ["metadata"]).out_of_reach()


def test_an_address_that_was_never_used() -> None:
    """Nothing came through the door, however long it was waited for."""
    with pytest.raises(AdapterBreach, match="never used the address"):
        Barred(0, 0, []).out_of_reach()
