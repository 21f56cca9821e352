"""Any legal history of a join passes every check, and any mutated one is caught.

A small design is played here that shares nothing with the model. It reads two topics in any order,
in batches, and keeps the newest rows. It shows the result of every key that a batch touched, is
killed, and goes on from its last commit.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pytest
from histories import Story
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from properties import claimed, found, some

from upheld.checks.joins import races
from upheld.checks.view import view_of
from upheld.history import History
from upheld.history.events import Record

PROGRAMS = ("clients", "tickers", "holdings")
MODES = ("exactly_once", "at_least_once")
ROWS = ("ada", "bob")
TICKERS = ("A", "B", None, "UNKNOWN")


class Change(NamedTuple):
    """A change of a row or a partner, and whether it is visible."""

    kind: str
    number: int
    ticker: int
    visible: bool


@dataclass(frozen=True)
class Plan:
    """Two inputs, and the lives of a design step by step.

    Each life but the last one ends with a kill.
    """

    program: str
    mode: str
    inputs: tuple[Change, ...]
    lives: tuple[tuple[int | str, ...], ...]
    last: tuple[int | str, ...]
    says_more: bool  # a tombstone also where nothing was visible


# The first row and partner have most of the traffic.
KINDS = (
    "row",
    "row",
    "partner",
    "row goes",
    "partner goes",
)
# A number takes a record of that partition. "show" shows the results of all taken records. All of
# them are committed then, or those that had been taken at the last "keep in mind", or none.
STEPS = (
    0,
    2,
    0,
    2,
    0,
    2,
    1,
    3,
    "show",
    "show",
    "show",
    "show",
    "show and commit",
    "keep in mind",
    "keep in mind",
)


def change(byte: int) -> Change:
    """Read one byte as a change: drawn together they are drawn fast."""
    kind = KINDS[byte % 5]
    number = byte // 5 % 4 // 3
    is_aborted = byte >= 120 and byte % 3 == 0
    return Change(kind, number, max(0, byte // 20 % 6 - 2), not is_aborted)


INPUTS = st.binary(min_size=9, max_size=14).map(lambda drawn: tuple(map(change, drawn)))
LIFE = st.binary(min_size=8, max_size=24).map(
    lambda drawn: tuple(STEPS[byte % len(STEPS)] for byte in drawn)
)


def plans(
    programs: Iterable[str] = PROGRAMS, modes: Iterable[str] = MODES, *, lives: int = 2
) -> st.SearchStrategy[Plan]:
    """Return small plans: a dozen changes of two rows and partners, up to two kills."""
    return st.builds(
        Plan,
        program=st.sampled_from(list(programs)),
        mode=st.sampled_from(list(modes)),
        inputs=INPUTS,
        lives=st.lists(LIFE, max_size=lives).map(tuple),
        last=LIFE,
        says_more=st.booleans(),
    )


@dataclass(frozen=True)
class State:
    """The memory of a design.

    It holds positions, newest rows and partners, and the results that it has shown and deleted
    last.
    """

    positions: tuple[int, ...] = (0, 0, 0, 0)
    rows: dict[bytes, Record] = field(default_factory=dict)
    partners: dict[bytes, Record] = field(default_factory=dict)
    shown: dict[bytes, tuple[Record, ...]] = field(default_factory=dict)  # empty: a tombstone
    told: frozenset[str] = frozenset()  # every deletion that has had a tombstone

    def after(self, record: Record, *, left: bool) -> "State":
        """Return the state with this record read."""
        place = (0 if left else 2) + record.partition
        positions = (*self.positions[:place], record.offset + 1, *self.positions[place + 1 :])
        if not record.visible:
            return replace(self, positions=positions)
        table = (self.rows if left else self.partners) | {record.key or b"": record}
        return replace(self, positions=positions, **{"rows" if left else "partners": table})


class Design:
    """Reads both inputs as a plan says, and writes its results into the story."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.exactly_once = plan.mode == "exactly_once"
        self.broadcast = plan.program == "tickers"
        self.story = Story(plan.program, plan.mode)
        self.log: list[list[Record]] = [[], [], [], []]
        for change in plan.inputs:
            record = self._write(*change)
            self.log[record.partition + 2 * (record.topic == self.story.second)].append(record)
        self.state = self.committed = State()
        self.touched: dict[bytes, None] = {}

    def _write(self, what: str, number: int, ticker: int, visible: bool) -> Record:
        changes: dict[str, Any] = {"partition": number % 2, "visible": visible}
        if what.endswith("goes"):
            changes["value"] = None
        if what.startswith("row"):
            cells = (ticker,) if self.plan.program == "clients" else (TICKERS[ticker],)
            return self.story.left(ROWS[number], *cells, **changes)
        return self.story.right(
            ROWS[number] if self.plan.program == "clients" else "AB"[number], **changes
        )

    def play(self) -> "Design":
        """Live every life of the plan, then drain both inputs.

        The claims of the features stand where they are made.
        """
        story = self.story
        for steps in self.plan.lives:
            self._live(steps)
            story.kill()
            self._settled()
            self.state = (
                self.committed
                if self.exactly_once
                else replace(self.committed, shown={}, told=frozenset())
            )
        self._live((*self.plan.last, *(0, 2, 1, 3) * len(self.plan.inputs), "show and commit"))
        story.rests()
        story.claims("promptly")
        story.claims("relation")
        story.kill()
        self._settled()
        return self

    def _live(self, steps: Iterable[int | str]) -> None:
        self.story.start()
        self.touched.clear()
        if self.broadcast:
            self.state = replace(
                self.state, positions=(*self.state.positions[:2], 0, 0), partners={}
            )
            while self._take(2) or self._take(3):
                pass
        kept = self.state
        for step in steps:
            if isinstance(step, int):
                self._take(step)
            elif step == "keep in mind":
                kept = self.state
            else:
                self._show_all()
                kept = self.state if self.exactly_once or step == "show and commit" else kept
                self.committed = replace(kept, shown=self.state.shown, told=self.state.told)

    def _settled(self) -> None:
        positions = self.committed.positions
        self.story.settled(*positions[:2], second=() if self.broadcast else positions[2:])
        self.story.claims("fold")

    def _show_all(self) -> None:
        for key in self.touched:
            self._show(key)
        self.touched.clear()

    def _take(self, place: int) -> bool:
        unread = [
            record for record in self.log[place] if record.offset >= self.state.positions[place]
        ]
        if not unread:
            return False
        record = unread[0]
        left = place < 2
        self.state = self.state.after(record, left=left)
        if record.visible and left:
            self.touched[record.key or b""] = None
        elif record.visible and not self.broadcast:
            self.touched |= {
                key: None for key in self.state.rows if self._refers_to(key) == record.key
            }
        return True

    def _refers_to(self, key: bytes) -> bytes | None:
        row = json.loads(self.state.rows[key].value or b"{}")
        name = row.get("client") if self.plan.program == "clients" else row.get("ticker")
        return str(name).encode() if name else None

    def _show(self, key: bytes) -> None:
        """Show the result, or delete what may be visible; a deletion is told once."""
        row = self.state.rows[key]
        partner = self.state.partners.get(self._refers_to(key) or b"")
        pair = (row, partner) if partner and partner.value else (row,)
        if row.value and (len(pair) == 2 or self.plan.program == "holdings"):
            self.story.joined(*pair)
            self.state = replace(self.state, shown=self.state.shown | {key: pair})
            return
        cause = row if not row.value or self.broadcast else partner
        shown = self.state.shown.get(key)
        if (
            cause is None
            or shown == ()
            or not (shown or self.plan.says_more or not self.exactly_once)
        ):
            return
        if f"{key!r}{cause.at}" not in self.state.told:
            self.story.tombstone(row)
            told = self.state.told | {f"{key!r}{cause.at}"}
            self.state = replace(self.state, shown=self.state.shown | {key: ()}, told=told)

    # --- what a mutation asks for

    @property
    def outputs(self) -> list[Record]:
        """Return every result in the order of the history."""
        return [e for e in self.story.history.of(Record) if e.topic == self.story.writes]

    def of(self, key: bytes) -> list[Record]:
        """Return the results of one key."""
        return [output for output in self.outputs if output.key == key]

    @property
    def pairs(self) -> list[Record]:
        """Return the results of two records of which no other state says the same."""
        return [output for output in self.outputs if _places(output)["right"]]

    def history(self, *changes: tuple[Record, list[Record]]) -> History:
        """Return the history with each of these results replaced by others.

        Every result is given the offset of its new place.
        """
        return self.story.edited(*changes)


def _places(output: Record) -> dict[str, str | None]:
    places: dict[str, str | None] = (
        json.loads(output.value)["from"] if output.value else {"left": None, "right": None}
    )
    return places


def played(plan: Plan) -> Design:
    """Return the history of this plan."""
    return Design(plan).play()


@settings(max_examples=100)
@given(plans())
def test_a_legal_history_is_never_wrong(plan: Plan) -> None:
    """No legal history raises an anomaly.

    Legal are any order of the two topics, conflation, needless tombstones, and kills, as the mode
    allows them.
    """
    history = played(plan).story.history

    assert {check: names for check, names in claimed(history).items() if names} == {}
    assert view_of(history, "app").is_settled
    assert not any(count < 0 for count in races(history, "app").values())


@given(plans(modes=["exactly_once"]), st.data())
def test_the_last_result_is_dropped(plan: Plan, data: st.DataObject) -> None:
    """A key that rests on another or deleted result has lost its last one.

    It is late and behind the commit.
    """
    design = played(plan)
    keys = [design.of(key) for key in {output.key or b"" for output in design.outputs}]
    keys = [
        outputs
        for outputs in keys
        if (outputs[-2].value if len(outputs) > 1 else None) != outputs[-1].value
    ]
    last = some(data, keys)[-1]
    history = design.history((last, []))

    assert found("relation", history) == {"lost"}
    assert found("promptly", history) == {"late"}
    assert found("fold", history) & {"behind-commit", "ahead-of-commit"}
    assert not view_of(history, "app").is_settled


@given(plans(modes=["exactly_once"]), st.data())
def test_the_last_tombstone_is_dropped(plan: Plan, data: st.DataObject) -> None:
    """A row that went and stays visible is lost, late and behind the commit."""
    design = played(plan)
    went = [o for o in design.outputs if o is design.of(o.key or b"")[-1] and o.value is None]
    needed = [
        o
        for o in went
        if [each.value for each in design.of(o.key or b"")[-2:-1]] not in ([], [None])
    ]
    history = design.history((some(data, needed), []))

    assert found("relation", history) == {"lost"}
    assert found("promptly", history) == {"late"}
    assert found("fold", history) == {"behind-commit"}


@given(plans(modes=["exactly_once"]), st.data())
def test_two_results_change_places(plan: Plan, data: st.DataObject) -> None:
    """An older pair behind a newer one is stale, and behind a tombstone resurrected."""
    design = played(plan)
    several = [
        (a, b) for a in design.pairs for b in design.pairs if a.key == b.key and a.offset < b.offset
    ]
    first, second = some(data, several)
    history = design.history((first, [second]), (second, [first]))

    assert found("relation", history) & {"stale-overwrite", "resurrected"}
    assert found("relation", history) <= {"stale-overwrite", "resurrected", "duplicated", "lost"}


@given(plans(modes=["exactly_once"]), st.data())
def test_a_result_comes_again(plan: Plan, data: st.DataObject) -> None:
    """A pair may come again right after itself, and after nothing else of its key."""
    design = played(plan)
    pair = some(data, design.pairs)
    later = data.draw(
        st.sampled_from([o for o in design.of(pair.key or b"") if o.offset >= pair.offset])
    )
    history = design.history((later, [later, pair]))

    names = found("relation", history)

    if later.value == pair.value:
        assert names == set()
    else:
        assert names & {"stale-overwrite", "resurrected"}


@given(plans(modes=["exactly_once"]), st.data())
def test_a_tombstone_is_duplicated(plan: Plan, data: st.DataObject) -> None:
    """More tombstones than deletions are too many, however deletions are told apart."""
    design = played(plan)
    gone = some(data, [output for output in design.outputs if output.value is None])
    history = design.history((gone, [gone] * (len(plan.inputs) + 1)))

    assert "duplicated" in found("relation", history)


@given(plans(modes=["exactly_once"]), st.data())
def test_another_partner(plan: Plan, data: st.DataObject) -> None:
    """A row with a partner that it does not refer to is phantom.

    So is one with a partner that a broadcast did not leave. A partner may be aborted too.
    """
    design = played(plan)
    pair = some(data, design.pairs)
    records = {record.at.removeprefix("app-"): record for log in design.log for record in log}
    left, right = (records[place or ""] for place in _places(pair).values())
    others = [r for r in records.values() if r.topic == right.topic and r.value and r is not right]
    other = some(
        data,
        [r for r in others if r.key != right.key or not r.visible or plan.program == "tickers"],
    )
    wrong = Story(plan.program).joined(left, other)
    history = design.history((pair, [pair._replace(value=wrong.value)]))
    name = "phantom" if other.visible else "uncommitted-visible"

    assert found("relation", history) - {"lost"} == {name}
    assert name in found("promptly", history)
    assert name in found("fold", history)


@given(plans(modes=["exactly_once"]), st.data())
def test_an_aborted_row_is_joined(plan: Plan, data: st.DataObject) -> None:
    """A result of an aborted row is told as such, and nothing else is wrong."""
    design = played(plan)
    pair = some(data, design.pairs)
    records = {record.at.removeprefix("app-"): record for log in design.log for record in log}
    left, right = (records[place or ""] for place in _places(pair).values())
    aborted = some(
        data, [r for r in records.values() if r.topic == left.topic and r.value and not r.visible]
    )
    wrong = Story(plan.program).joined(aborted, right, offset=0)
    history = design.history((pair, [pair, wrong]))

    assert found("relation", history) == {"uncommitted-visible"}


@given(plans(modes=["exactly_once"]), st.data())
def test_an_old_result_at_the_end(plan: Plan, data: st.DataObject) -> None:
    """A result that was replaced or deleted does not come again as the last one.

    Under exactly_once it never comes again.
    """
    design = played(plan)
    old = some(
        data, [pair for pair in design.pairs if pair.value != design.of(pair.key or b"")[-1].value]
    )
    last = design.of(old.key or b"")[-1]
    history = design.history((last, [last, old]))

    assert found("relation", history) in ({"stale-overwrite", "lost"}, {"resurrected", "lost"})
    assert found("fold", history) <= {"stale-overwrite", "resurrected", "behind-commit"}
    assert found("fold", history)
    assert not view_of(history, "app").is_settled


@given(plans(modes=["at_least_once"], lives=0), st.data())
def test_a_step_back_without_a_new_start(plan: Plan, data: st.DataObject) -> None:
    """At_least_once goes on from where it was unless somebody started again."""
    design = played(plan)
    old = some(
        data, [pair for pair in design.pairs if pair.value != design.of(pair.key or b"")[-1].value]
    )
    last = design.of(old.key or b"")[-1]
    history = design.history((last, [last, old, last]))

    assert found("relation", history) == {"stale-overwrite" if last.value else "resurrected"}


@given(plans(modes=["exactly_once"]), st.data())
def test_the_results_are_ahead_of_the_commit(plan: Plan, data: st.DataObject) -> None:
    """Under exactly_once no pair is visible whose row is not committed."""
    design = played(plan)
    pair = some(data, [pair for pair in design.pairs if pair is design.of(pair.key or b"")[-1]])
    places = [*design.state.positions]
    partition, offset = (
        int(part) for part in str(_places(pair)["left"]).rsplit("-", 1)[1].split("@")
    )
    places[partition] = offset
    design.story.settled(*places[:2], second=places[2:])

    assert found("fold", design.story.history) & {"ahead-of-commit", "behind-commit"}


@pytest.mark.parametrize("program", PROGRAMS)
@given(data=st.data())
def test_random_values(program: str, data: st.DataObject) -> None:
    """An output of any bytes or any JSON ends in an anomaly, never in a traceback.

    Some have the shape of a result.
    """
    story = Story(program)
    left = story.left("1", "1")
    right = story.right("1")
    result = json.loads(story.joined(left, right).value or b"")
    any_value = st.none() | st.integers() | st.text("ab") | st.just([]) | st.just({})
    for side in data.draw(st.sets(st.sampled_from(["left", "right", "from"]), min_size=1)):
        result[side] = data.draw(
            any_value | st.fixed_dictionaries({}, optional=dict.fromkeys(result[side], any_value))
        )
    value = data.draw(st.binary(max_size=40) | st.just(json.dumps(result).encode()))
    key = data.draw(st.sampled_from([b"1", b"\xff", None]))
    assume(value != next(r.value for r in story.history.of(Record) if r.topic == story.writes))
    story.joined(left, right, value=value, key=key)
    story.rests()
    story.settled(1, second=[1])

    for check in ("relation", "promptly", "fold", "named", "same-rows"):
        story.failed("no")
        found(check, story.history)
    assert story.found("result", table=[["client"]])
    assert found("relation", story.history)
