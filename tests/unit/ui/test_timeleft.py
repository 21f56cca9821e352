"""The time left of a run is estimated, and is near the truth.

It is compared with runs that were recorded.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from clocks import Clock

from upheld.spec.durations import Durations, Recorded
from upheld.ui.timeleft import RowKey, TimeLeft

RECORDED = json.loads(
    (Path(__file__).parents[2] / "data" / "recorded_runs.json").read_text(encoding="utf-8")
)
NEAR = 0.25  # of the time that is really left
SOON = 0.03  # of a run; less is neither near nor far: one row decides it
FROM = 1 / 3  # of a run


class Estimate(NamedTuple):
    """The time left that was said at a moment of a run, and the true one."""

    at_s: float
    estimated_s: float
    left_s: float
    run_s: float

    @property
    def is_near(self) -> bool:
        """Return whether the estimate is as exact as is promised."""
        return abs(self.estimated_s - self.left_s) <= max(NEAR * self.left_s, SOON * self.run_s)


def keys(design: str, *names: str) -> list[RowKey]:
    """Return rows of a design."""
    return [RowKey(design, name, 0) for name in names]


def replayed(run: dict[str, Any], durations: Durations) -> Iterator[Estimate]:
    """Go through a recorded run.

    There is an estimate whenever a row begins or ends in one of its lanes.
    """
    clock = Clock()
    rows = defaultdict(list)
    for lane, row_id, seconds in run["rows"]:
        rows[lane].append((row_id, seconds))
    time_left = TimeLeft(durations, len(rows), clock)
    time_left.begin([RowKey("plain", row_id, 0) for _, row_id, _ in run["rows"]])
    ends = {lane: sum(seconds for _, seconds in own) for lane, own in rows.items()}
    moments: list[tuple[float, int, Callable[[], None]]] = []
    for lane, own in rows.items():
        at_s = 0.0
        for row_id, seconds in own:
            key = RowKey("plain", row_id, 0)
            moments.append((at_s, 1, lambda key=key, lane=lane: time_left.started(key, lane)))
            at_s += seconds
            moments.append((at_s, 0, lambda lane=lane: time_left.finished(lane)))
    moments.sort(key=lambda moment: moment[:2])
    for at_s, _, happens in moments:
        clock.now_s = at_s
        happens()
        time_left.lanes = sum(end_s > at_s for end_s in ends.values()) or 1
        run_s = max(ends.values())
        yield Estimate(at_s, time_left.seconds(), run_s - at_s, run_s)


@pytest.fixture
def clock() -> Clock:
    """Return a clock."""
    return Clock()


@pytest.mark.parametrize("name", RECORDED["runs"])
def test_the_time_left_is_near_the_truth_from_a_third_of_a_recorded_run_on(name: str) -> None:
    """The estimate is within a quarter of the truth.

    The medians were not made from these runs, and the machine was slower than theirs.
    """
    run = RECORDED["runs"][name]
    durations = Durations(designs={"plain": Recorded(rows_s=RECORDED["medians_s"])})

    estimates = list(replayed(run, durations))

    late = [each for each in estimates if each.at_s >= FROM * each.run_s]
    assert len(late) > len(run["rows"]) / 2
    assert [each for each in late if not each.is_near] == []


@pytest.mark.parametrize("name", RECORDED["runs"])
def test_without_what_this_machine_has_taken_the_estimates_would_be_far(name: str) -> None:
    """The medians alone are too low.

    So the recorded runs can tell a good estimate from a bad one.
    """
    run = RECORDED["runs"][name]
    lanes = len({lane for lane, *_ in run["rows"]})

    expected_s = sum(RECORDED["medians_s"][row_id] for _, row_id, _ in run["rows"]) / lanes
    taken_s = sum(seconds for *_, seconds in run["rows"]) / lanes

    assert expected_s < (1 - NEAR / 2) * taken_s


def test_what_works_is_slower_and_what_waits_is_not(clock: Clock) -> None:
    """A row that takes twice as long as another is no more work.

    Both lose the same on a slow machine.
    """
    rows_s = {"G1.a": 1.0, "G2.a": 1.0, "G3.a": 1.0, "G4.a": 10.0}
    time_left = TimeLeft(Durations(designs={"plain": Recorded(rows_s=rows_s)}), clock=clock)
    time_left.begin(keys("plain", *rows_s))
    assert time_left.seconds() == 13.0

    for key in keys("plain", "G1.a", "G2.a", "G3.a"):
        time_left.started(key)
        clock.now_s += 3.0
        time_left.finished()

    assert 11.8 < time_left.seconds() < 12.0


def test_an_unknown_design_has_a_pace_of_its_own(clock: Clock) -> None:
    """The rows of an unknown design are guessed, so they are wrong by a factor.

    The factor says nothing of the machine or of other designs.
    """
    rows_s = {f"G{number}.a": float(number) for number in range(1, 21)}
    durations = Durations(designs={"spark": Recorded(rows_s=rows_s)})
    time_left = TimeLeft(durations, clock=clock)
    time_left.begin(keys("mine", *rows_s) + keys("spark", *rows_s))

    for key in keys("mine", *rows_s)[:-1]:
        time_left.started(key)
        clock.now_s += rows_s[key.row_id] / 10
        time_left.finished()
    left_s = time_left.seconds()

    assert 210 <= left_s < 216


def test_lanes_share_what_waits(clock: Clock) -> None:
    """The time left is shared by the lanes that run.

    It is never less than the longest row.
    """
    durations = Durations(designs={"plain": Recorded(rows_s={"G1.a": 4, "G1.b": 4, "G1.c": 4})})
    time_left = TimeLeft(durations, 2, clock)
    time_left.begin(keys("plain", "G1.a", "G1.b", "G1.c"))
    assert time_left.seconds() == 6.0

    for lane, key in enumerate(keys("plain", "G1.a", "G1.b"), 1):
        time_left.started(key, lane)
    clock.now_s = 3.0
    assert time_left.seconds() == 4.0

    clock.now_s = 4.0
    time_left.finished(1)
    time_left.finished(2)
    time_left.started(keys("plain", "G1.c")[0], 1)
    time_left.lanes = 1
    assert time_left.seconds() == 4.0


def test_a_row_under_way_counts_for_what_is_left_of_it(clock: Clock) -> None:
    """However long it takes, it is not over before it ends."""
    time_left = TimeLeft(Durations(designs={"plain": Recorded(rows_s={"G1.a": 10})}), clock=clock)
    time_left.begin(keys("plain", "G1.a"))
    time_left.started(*keys("plain", "G1.a"))

    clock.now_s = 4.0
    assert time_left.seconds() == 6.0
    clock.now_s = 60.0
    assert time_left.seconds() == 1.0
    time_left.finished()
    assert time_left.seconds() == 0.0


def test_what_proved_nothing_is_judged_again_alone(clock: Clock) -> None:
    """An inconclusive row is judged again after the others, in one lane.

    So are the rows of which that is known beforehand.
    """
    durations = Durations(designs={"plain": Recorded(rows_s={"G1.a": 4, "G1.b": 4, "G1.c": 6})})
    time_left = TimeLeft(durations, 2, clock)
    first, second, late = keys("plain", "G1.a", "G1.b", "G1.c")
    time_left.begin([first, second], alone=[late])
    assert time_left.seconds() == 4.0 + 6.0

    time_left.started(first, 1)
    time_left.started(second, 2)
    clock.now_s = 4.0
    time_left.finished(1)
    time_left.postponed(2)

    assert time_left.seconds() == 10.0


def test_a_boot_counts_once_for_each_design_and_lane(clock: Clock) -> None:
    """The first row of a design is longer by it in each lane that judges it."""
    one_row = {"G1.a": 2.0, "G1.b": 2.0, "G1.c": 2.0}
    recorded = {name: Recorded(boot_s=8, rows_s=one_row) for name in ("plain", "spark")}
    time_left = TimeLeft(Durations(designs=recorded), clock=clock)
    time_left.begin(keys("plain", *one_row) + keys("spark", *one_row))
    assert time_left.seconds() == 12 + 16

    time_left.started(*keys("plain", "G1.a"))
    assert time_left.seconds() == 12 + 16
    clock.now_s = 10.0
    time_left.finished()
    assert time_left.seconds() == 10 + 8

    alone = TimeLeft(Durations(designs=recorded), 2, clock)
    alone.begin(keys("plain", *one_row))
    assert alone.seconds() == (6 + 16) / 2


def test_one_row_that_went_wrong_does_not_spoil_the_estimate(clock: Clock) -> None:
    """Five attempts are no slow machine."""
    rows_s = {f"G{number}.a": 2.0 for number in range(20)}
    time_left = TimeLeft(Durations(designs={"plain": Recorded(rows_s=rows_s)}), clock=clock)
    time_left.begin(keys("plain", *rows_s))

    for number, key in enumerate(keys("plain", *rows_s)[:10]):
        time_left.started(key)
        clock.now_s += 60.0 if number == 4 else 2.0
        time_left.finished()

    assert 20 <= time_left.seconds() < 26
