"""Each wait has an end, a record of it, and a deadline."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attempts import Attempt, timeless

from upheld.history.events import Committed, Contract, InputRested, Mark, Measured, Offsets
from upheld.history.marks import Happening
from upheld.kafka.consumers import Position
from upheld.protocol.messages import OffsetsMean
from upheld.trial import waits
from upheld.trial.application import Application
from upheld.trial.instances import Launch
from upheld.trial.waits import Waits
from upheld.verdicts import MarkMissed, NotOffered, Violated


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    """Make an attempt in which time passes by sleeps alone."""
    return timeless(tmp_path, monkeypatch)


class World:
    """Probes, instances and a monitor of which a test writes the answers."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.committed: Offsets | None = {"trial-relay-input-0": 5}
        self.drained: Callable[[], bool] = lambda: True
        self.decided: Callable[[], bool] = lambda: True
        self.left_open = False
        self.ends: Callable[[], Position] = lambda: {0: 1}
        self.sizes = [1]
        self.observed = 0
        self.ended: list[str] = []
        self.refuses = False

    def waits(self, *capabilities: str) -> Waits:
        """Return the waits for a design with these capabilities."""
        attempt = self.attempt
        probes: Any = SimpleNamespace(
            observe=self._observe,
            committed=lambda _, **__: self.committed,
            offsets=lambda _, **__: self.committed,
            all_decided=lambda _: self.decided(),
            is_left_open=lambda _: self.left_open,
            ends=lambda _: (self.ends(), self.ends()),
            measure=lambda *_: SimpleNamespace(size=self._size(), unit="rows"),
            first_size=lambda _: next(attempt.history.of(Measured), None),
            outputs_seen=lambda _: self.observed,
        )
        monitor: Any = SimpleNamespace(
            tick=lambda _: None, is_drained=lambda _, **__: self.drained()
        )
        instances: Any = SimpleNamespace(
            gave_up=lambda _, name: self.ended.append(f"{name} gave up"),
            start=self._start,
            stop=lambda _, name: self.ended.append(f"{name} stopped"),
            let_go=lambda _, name: self.ended.append(f"{name} let go"),
        )
        manifest = attempt.manifest_with(*capabilities)
        return Waits(attempt.recorder, attempt.rig, manifest, probes, instances, monitor)

    def after(self, milliseconds: int) -> Callable[[], bool]:
        """Return a condition that holds from then on."""
        return lambda: self.attempt.recorder.now_ms >= milliseconds

    def _observe(self, _: Application) -> None:
        self.observed += 1

    def _start(self, _: Application, name: str, launch: Launch) -> Any:
        is_refused = self.refuses and launch.may_refuse
        self.ended.append(f"{name} refused" if is_refused else f"{name} started")
        return None if is_refused else SimpleNamespace()

    def _size(self) -> int:
        return self.sizes.pop(0) if len(self.sizes) > 1 else self.sizes[0]


@pytest.fixture
def world(attempt: Attempt) -> World:
    """Return a design that has done all that is waited for."""
    return World(attempt)


def grouped(attempt: Attempt) -> Application:
    """Declare an application whose design names a consumer group."""
    application = attempt.application()
    application.group = "group"
    return application


def test_a_drained_input_is_observed_to_the_end(attempt: Attempt, world: World) -> None:
    """From then on the outputs are not observed all along any more."""
    application = grouped(attempt)
    application.sight.observed_ms = 0
    world.drained = world.after(500)

    world.waits().drain(application)

    assert 500 <= attempt.recorder.now_ms < 600
    assert world.observed > 10
    assert application.sight.observed_ms is None


def test_an_input_that_moves_no_further_is_stuck(attempt: Attempt, world: World) -> None:
    """The anomaly says where the offsets rest, and where the input ends."""
    application = grouped(attempt)
    application.input.ends = {"trial-relay-input-0": 9}
    world.drained = lambda: False

    with pytest.raises(Violated, match=r"rest at \{.*: 5\}, the visible input ends at \{.*: 9\}"):
        world.waits().drain(application)
    assert attempt.recorder.now_ms < 2_500


def test_an_input_that_moves_is_given_time(attempt: Attempt, world: World) -> None:
    """The time until an input is stuck begins anew with each progress."""
    application = grouped(attempt)

    def moves() -> bool:
        world.committed = {"trial-relay-input-0": attempt.recorder.now_ms // 1_000}
        return attempt.recorder.now_ms > 9_000

    world.drained = moves

    world.waits().drain(application)


def elsewhere(attempt: Attempt, *, alone: bool) -> Application:
    """Declare an application whose progress is in no group; it may have an adapter."""
    application = attempt.application()
    application.progress = "none"
    if alone:
        parameters = {"commit_interval_ms": 1_000}
        contract = Contract(name="orders", reads="orders", writes="costs", format="json")
        update = {"contract": contract, "parameters": parameters}
        event = application.event.model_copy(update=update)
        application.deployment = replace(application.deployment, event=event)
    return application


@pytest.mark.parametrize(("alone", "still_ms"), [(False, 1_500), (True, 3_000)])
def test_outputs_are_still_before_an_input_without_offsets_is_drained(
    attempt: Attempt, world: World, alone: bool, still_ms: int
) -> None:
    """An application says how long an output may take; a later output begins it anew."""
    world.ends = lambda: {0: min(attempt.recorder.now_ms // 400, 2)}

    world.waits().drain(elsewhere(attempt, alone=alone))

    assert 800 + still_ms <= attempt.recorder.now_ms < 900 + still_ms


def test_a_replay_that_begins_late_is_waited_for(attempt: Attempt, world: World) -> None:
    """An input that was drained is not while older states are shown once more."""
    world.drained = lambda: not 1_000 <= attempt.recorder.now_ms <= 4_000
    world.ends = lambda: {0: int(attempt.recorder.now_ms >= 1_000)}

    world.waits().drain(elsewhere(attempt, alone=True))

    assert 7_000 <= attempt.recorder.now_ms < 7_200


def test_outputs_that_move_no_further_are_stuck(attempt: Attempt, world: World) -> None:
    """The anomaly says where they rest, if no offsets do."""
    world.committed = None
    world.drained = lambda: False

    with pytest.raises(Violated, match=r"for 2 s its outputs rest at \{0: 1\}, the visible input"):
        world.waits().drain(elsewhere(attempt, alone=True))


def test_an_instance_that_stops_loudly_is_started_once_more(attempt: Attempt, world: World) -> None:
    """As a supervisor of processes does."""
    application = grouped(attempt)
    application.is_supervised = True
    application.stopped = ["a"]

    assert world.waits().drain_again(application)

    assert world.ended == ["a started"]
    assert (application.stopped, application.restarted) == ([], {"a"})
    assert not application.may_stop("a")
    assert application.may_stop("b")


def test_an_instance_may_refuse_to_start_again(attempt: Attempt, world: World) -> None:
    """Then the others are stopped, and what is committed is looked at."""
    application = grouped(attempt)
    application.is_supervised = True
    application.stopped = ["a"]
    application.running["b"] = SimpleNamespace()  # type: ignore[assignment]
    world.refuses = True

    assert not world.waits().drain_again(application, may_refuse=True)

    assert world.ended == ["a refused", "a let go", "b stopped"]
    assert len(list(attempt.history.of(Committed))) == 1


def test_a_cut_says_how_long_readers_waited(attempt: Attempt, world: World) -> None:
    """The time until nothing is open is measured, unless it was measured already."""
    application = grouped(attempt)
    world.decided = world.after(300)

    world.waits().settle(application)
    world.waits().settle(application, waited_ms=77)

    measured, given = attempt.history.of(Committed)
    assert 300 <= measured.stable_ms < 400
    assert (measured.offsets, measured.down) == ({"trial-relay-input-0": 5}, True)
    assert given.stable_ms == 77


def test_a_transaction_that_outlives_its_timeout_is_stuck(attempt: Attempt, world: World) -> None:
    """The broker would have aborted it by then."""
    world.decided = lambda: False

    with pytest.raises(Violated, match="still open long after its timeout"):
        world.waits().settle(grouped(attempt))
    assert attempt.recorder.now_ms < 5_200


def test_a_transaction_that_the_dead_left_open_may_stay(attempt: Attempt, world: World) -> None:
    """The outputs are observed between two looks that find it open."""
    world.decided = lambda: False
    world.left_open = True

    world.waits().settle(grouped(attempt), until_decided=False)

    (cut,) = attempt.history.of(Committed)
    assert cut.offsets == {"trial-relay-input-0": 5}
    assert attempt.recorder.now_ms == 0


@pytest.mark.parametrize("progress", ["group-leads", "none"])
def test_no_abort_is_waited_for_if_the_truth_is_elsewhere(
    attempt: Attempt, world: World, progress: OffsetsMean
) -> None:
    """The next start decides what the dead one has prepared for a commit."""
    world.decided = lambda: False
    world.left_open = True
    application = grouped(attempt)
    application.progress = progress

    world.waits().settle(application)

    assert attempt.recorder.now_ms == 0


def test_an_input_rests_no_longer_than_promised(attempt: Attempt, world: World) -> None:
    """Where the outcome is visible before that, the look at it ends."""
    application = grouped(attempt)
    world.drained = world.after(200)
    world.waits().rest(application, 1_000)
    world.drained = lambda: False
    application.ready_ms = attempt.recorder.now_ms
    world.waits().rest(application, 1_000)

    early, late = attempt.history.of(InputRested)
    assert 200 <= early.looked_ms < 300
    assert 1_000 <= late.looked_ms - late.since_ms < 1_100
    assert (late.tolerance_ms, late.canary_ms) == (1_000, 3)


@pytest.mark.parametrize(
    ("others", "comes_ms", "expected"),
    [
        (0.5, 99_000, (1_000, 1_000)),
        (0.5, 1_500, (500, 0)),
        (0.5, 200, (0, 0)),
        (0.2, 99_000, (0, 0)),
    ],
)
def test_a_late_outcome_is_looked_for_longer(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    others: float,
    comes_ms: int,
    expected: tuple[int, int],
) -> None:
    """If others took the cores, the look ends when it comes or nothing moves."""
    attempt = timeless(tmp_path, monkeypatch)
    monkeypatch.setattr(waits, "STILL_MS", 1_000)
    monkeypatch.setattr(Waits, "_others", lambda *_: others)
    monkeypatch.setattr(Waits, "_is_out", lambda *_: attempt.recorder.now_ms >= comes_ms)
    waiting = World(attempt).waits()

    waiting.rest(grouped(attempt), 1_000, may_look_on=True)
    waiting.rest(grouped(attempt), 1_000)

    looked, never = attempt.history.of(InputRested)
    assert (looked.looked_on_ms, looked.still_ms) == pytest.approx(expected, abs=100)
    assert (never.looked_on_ms, never.still_ms) == (0, 0)


def test_a_recovery_is_marked_if_there_was_one(attempt: Attempt, world: World) -> None:
    """The look is recorded in either case."""
    application = grouped(attempt)

    world.waits().recovers(application, 0, 500, world.after(100))
    world.waits().recovers(application, attempt.recorder.now_ms, 500, lambda: False)

    (mark,) = attempt.history.of(Mark)
    assert mark.happening == Happening.RECOVERED
    assert 100 <= mark.evidence["after_ms"] < 200
    assert len(list(attempt.history.of(InputRested))) == 2


def test_the_first_output_counts_from_the_cold_start(attempt: Attempt, world: World) -> None:
    """The promised time begins at the last cold start or switch of clusters."""
    attempt.recorder.wait(1.0, lambda: False)
    attempt.recorder.mark(Happening.STARTED_COLD)
    started_ms = attempt.recorder.now_ms
    attempt.recorder.wait(1.0, lambda: False)

    world.waits().first_output(grouped(attempt), 5_000)

    (look,) = attempt.history.of(InputRested)
    assert look.since_ms == started_ms


@pytest.mark.parametrize(("within_ms", "size"), [(1_000, 10), (30, 40)])
def test_a_state_is_measured_until_it_is_small(
    attempt: Attempt, world: World, within_ms: int, size: int
) -> None:
    """If the promised time is up before that, it is recorded as it is."""
    waits = world.waits("measure")
    application = grouped(attempt)
    world.sizes = [5, 40, 40, 40, 10]

    waits.measure(application)
    waits.measure(application, times=2, within_ms=within_ms)

    assert [each.size for each in attempt.history.of(Measured)] == [5, size]


def test_a_state_of_unknown_size_is_not_offered(attempt: Attempt, world: World) -> None:
    """A design may not say how much it holds."""
    with pytest.raises(NotOffered, match="capability measure"):
        world.waits().measure(grouped(attempt))


@pytest.mark.parametrize(("written", "ended"), [(0, Violated), (8, MarkMissed)])
def test_a_table_that_the_cleaner_leaves_whole(
    attempt: Attempt,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    written: int,
    ended: type[Exception],
) -> None:
    """A moment is missed if there are rows. If there are none, the design is stuck."""
    monkeypatch.setattr(Waits, "watch", lambda *_: None)
    attempt.rig.reading.records = lambda *_, **__: [SimpleNamespace()] * written
    world.observed = written

    with pytest.raises(ended):
        world.waits().await_cleaner(grouped(attempt))


@pytest.mark.parametrize(
    ("query_s", "ready_in", "asked"), [(3.0, 3, 3), (3.0, 9, 4), (0.1, 9, 9), (0.1, 40, 22)]
)
def test_each_key_is_asked_for_a_few_times(
    world: World, monkeypatch: pytest.MonkeyPatch, query_s: float, ready_in: int, asked: int
) -> None:
    """The promised time counts from the first question to the last one.

    On a slow machine one question takes longer than it. Then the key is asked for again.
    """
    application = world.attempt.application("pulse")
    application.keys = ["robot"]
    questions = list[str]()

    def query(_: Application, key: str) -> None:
        questions.append(key)
        waits.time.sleep(query_s)

    waiting = world.waits("query")
    waiting.probes.query = query  # type: ignore[method-assign]
    check = {"answered": lambda *_: ["stuck"] * (len(questions) < ready_in)}
    monkeypatch.setattr(waits, "CHECKS", check)
    waiting.query_all(application, 2_000)

    assert len(questions) == asked
