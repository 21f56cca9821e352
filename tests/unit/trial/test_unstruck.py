"""An application is run with nothing to strike it until its outputs are all there."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attempts import timeless

from upheld.generators.ledger import Send
from upheld.protocol.messages import Ready, Stopped
from upheld.trial.unstruck import Fresh, Unstruck
from upheld.verdicts import AdapterBreach

TOPICS = {"orders": "in", "costs": "out"}


class Written:
    """An output topic to which records come at some times."""

    def __init__(self, times_ms: list[int], now_ms: Callable[[], int]) -> None:
        self.times_ms = times_ms
        self.now_ms = now_ms

    def records(self, _: str, position: dict[int, int], *, committed: bool) -> list[int]:
        """Return the records that have come since the last look."""
        assert committed
        before = position[0]
        position[0] = self.ends("", 1)[1][0]
        return list(range(before, position[0]))

    def ends(self, _: str, __: int) -> tuple[dict[int, int], dict[int, int]]:
        """Return the ends of the topic."""
        end = {0: sum(at_ms <= self.now_ms() for at_ms in self.times_ms)}
        return end, end


@pytest.mark.parametrize(
    ("times_ms", "due", "ends_ms"),
    [
        ([500, 900], 0, 3_000),
        ([500, 900], 2, 3_000),
        ([500, 5_000], 2, 7_100),
        ([500], 2, 10_500),
    ],
    ids=["none known", "all there", "one is late", "one never comes"],
)
def test_outputs_that_no_offsets_tell_of_are_waited_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    times_ms: list[int],
    due: int,
    ends_ms: int,
) -> None:
    """Outputs are there when they have been still; those that are due get longer."""
    timed = timeless(tmp_path, monkeypatch)
    timed.rig.progress_s = 10.0
    timed.rig.reading = Written(times_ms, lambda: timed.recorder.now_ms)
    unstruck = Unstruck(timed.recorder, timed.rig, timed.manifest)
    application: Any = SimpleNamespace(partitions=1, visible_ms=2_100)

    unstruck._rest(application, ["costs"], due)

    assert ends_ms <= timed.recorder.now_ms < ends_ms + 100


@pytest.mark.parametrize(
    ("times_ms", "said"),
    [
        ([], "writes nothing in 10 s on its own input"),
        (list(range(0, 60_000, 1_000)), "still writes after 30 s on its own input"),
    ],
)
def test_outputs_that_do_not_come_to_rest_are_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times_ms: list[int], said: str
) -> None:
    """A run that says nothing of its input would prove nothing."""
    timed = timeless(tmp_path, monkeypatch)
    timed.rig.progress_s = 10.0
    timed.rig.reading = Written(times_ms, lambda: timed.recorder.now_ms)
    unstruck = Unstruck(timed.recorder, timed.rig, timed.manifest)
    application: Any = SimpleNamespace(partitions=1, visible_ms=2_100)

    with pytest.raises(AdapterBreach, match=said):
        unstruck._rest(application, ["costs"], 0)


@pytest.mark.parametrize(
    ("progress", "group", "waits"),
    [
        ("group", "orders", ["offsets"]),
        ("group-leads", "orders", ["offsets", "outputs"]),
        ("none", "orders", ["outputs"]),
        ("none", None, ["outputs"]),
        ("group", None, ["outputs"]),
    ],
)
def test_offsets_are_waited_for_if_they_say_something(
    monkeypatch: pytest.MonkeyPatch,
    progress: str,
    group: str | None,
    waits: list[str],
) -> None:
    """If outputs come later than the commits, both are waited for."""
    said: list[str] = []
    monkeypatch.setattr(Unstruck, "_drain", lambda *_, **__: said.append("offsets"))
    monkeypatch.setattr(Unstruck, "_rest", lambda *_: said.append("outputs"))
    application: Any = SimpleNamespace(
        progress=progress, program=SimpleNamespace(results=("costs",))
    )
    nobody: Any = None

    Unstruck(nobody, nobody, nobody)._await_outputs(application, group, TOPICS, Fresh("once"))

    assert said == waits


def test_a_shift_leaves_nothing_to_read_in_any_isolation() -> None:
    """An aborted record would be read by an application that reads uncommitted data."""
    written: list[Send] = []
    truncated: dict[str, int] = {}
    rig: Any = SimpleNamespace(
        feed=SimpleNamespace(write=lambda _topics, _role, sends: written.extend(sends)),
        reading=SimpleNamespace(truncate=truncated.update),
    )
    nobody: Any = None
    topics = {"orders": "copy-orders", "refunds": "copy-refunds"}

    Unstruck(nobody, rig, nobody)._shift(topics, {"orders": 2, "refunds": 1})

    assert [(send.partition, send.transaction) for send in written] == [
        (0, None),
        (1, None),
        (0, None),
    ]
    assert truncated == {"copy-orders-0": 1, "copy-orders-1": 1, "copy-refunds-0": 1}


def test_topics_that_it_makes_for_itself_end_with_the_run(tmp_path: Path) -> None:
    """They would be taken for leaked ones: no row has declared them."""
    deleted: list[str] = []
    ready = Ready(consumer_group="g", internal_topics=("app-once0-changelog",))
    rig: Any = SimpleNamespace(
        answers={},
        reading=SimpleNamespace(
            create=lambda _: None,
            records=lambda *_, **__: [],
            ends=lambda *_: (0, 0),
            delete=deleted.extend,
            groups=SimpleNamespace(committed=lambda *_, **__: {}),
        ),
        feed=SimpleNamespace(write=lambda *_: {}),
        take=lambda _: SimpleNamespace(start=lambda _: ready, stop=lambda _: Stopped()),
        pool=lambda _: SimpleNamespace(give_back=lambda _: None),
        broker=SimpleNamespace(bootstrap="broker:1"),
        client_of=lambda _: {},
        security_of=lambda _: None,
        session_timeout_ms=1,
        progress_s=1,
    )
    roles = ("orders", "costs")
    program = SimpleNamespace(
        name="orders",
        topics=roles,
        inputs=roles[:1],
        reads="orders",
        writes="costs",
        further=(),
        results=roles[1:],
    )
    event = SimpleNamespace(
        application_id="app", topics=TOPICS, parameters={}, transaction_timeout_ms=0
    )
    application: Any = SimpleNamespace(
        event=event,
        mode="exactly_once",
        inputs={"in": 4},
        partitions=2,
        progress="group",
        directory=tmp_path / "row",
        program=program,
    )
    recorder: Any = SimpleNamespace(wait=lambda _, is_done: is_done())
    manifest: Any = SimpleNamespace(
        name="orders", topics=lambda identity, roles: {r: f"{identity}-{r}" for r in roles}
    )

    Unstruck(recorder, rig, manifest).run(application, [], Fresh("once"))

    assert deleted == ["app-once0-orders", "app-once0-costs", "app-once0-changelog"]
