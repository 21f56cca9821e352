"""An application is its own oracle: right is what it gave without a fault."""

import json
from typing import Any

import pytest
from histories import EPOCH_MS, begun

from upheld.checks import CHECKS
from upheld.checks.view import view_of
from upheld.generators.envelope_pb2 import Envelope, Hop
from upheld.history import History
from upheld.history.events import (
    Answered,
    Application,
    Committed,
    Contract,
    InputRested,
    Instance,
    Record,
)
from upheld.programs import GONE, Unreadable
from upheld.programs.itself import Difference, by_key, difference, digest_of, value_of
from upheld.verdicts import NotOffered

CONTRACT = Contract(name="orders", reads="orders", writes="costs", format="json", ignore=("$.at",))
LAST = {"is_ordered": False, "is_by_last_value": True}
RISING = CONTRACT.model_copy(update={"increasing": "$.nth"})
PLAIN = CONTRACT.model_copy(update={"ignore": ()})
BEGUN = begun(design="orders", local_state=False, seed=0)


def record(topic: str, offset: int, key: str, value: Any, *, visible: bool = True) -> Record:
    """Return a record of partition 0, whose value is JSON."""
    data = None if value is None else json.dumps(value).encode()
    return Record(topic, 0, offset, EPOCH_MS, key.encode(), data, (), visible)


def story(
    *,
    inputs: str = "aab",
    aborted: str = "",
    answers: str = "aab",
    shown: str = "aab",
    says: Any = None,
    **more: Any,
) -> History:
    """Return a history in words: each letter is a record of that key."""
    history = History([BEGUN])
    history.add(
        Application(
            name="app",
            application_id="app",
            program="relay",
            mode="exactly_once",
            topics={"orders": "in", "costs": "out"},
            parameters={"commit_interval_ms": 100},
            transaction_timeout_ms=3000,
            contract=more.pop("contract", CONTRACT),
        )
    )
    read = [record("in", offset, key, {"number": offset}) for offset, key in enumerate(inputs)]
    history.add_all(read)
    history.add_all(
        record("in", 100 + offset, key, {}, visible=False) for offset, key in enumerate(aborted)
    )
    history.add_all(outputs("asked", answers))
    history.add(
        Answered(
            at_ms=0,
            application="app",
            inputs=digest_of(read),
            outputs="asked",
            topics=("asked", "copy"),
            **more,
        )
    )
    history.add_all(outputs("out", shown))
    if says is not None:
        history.add(says)
    return history


def outputs(topic: str, keys: str) -> list[Record]:
    """Return an output for each letter: how often it came so far, and a clock."""
    return [
        record(topic, offset, key, {"nth": keys[:offset].count(key), "at": f"{topic}{offset}"})
        for offset, key in enumerate(keys)
    ]


def cut_off(history: History, answers: str, **more: Any) -> None:
    """Let the first two inputs be committed, and say what comes of them alone."""
    committed = list(history.of(Record))[:2]
    history.add_all(outputs("cut", answers))
    history.add(
        Answered(
            at_ms=0,
            application="app",
            inputs=digest_of(committed),
            outputs="cut",
            topics=("cut",),
            **more,
        )
    )
    history.add(Committed(at_ms=1, application="app", offsets={"in-0": 2}, stable_ms=0, down=True))


def at_least_once(history: History) -> History:
    """Return the history of an application in that mode."""
    changes = {"mode": "at_least_once"}
    return History(
        event.model_copy(update=changes) if isinstance(event, Application) else event
        for event in history.events
    )


def found(check: str, history: History) -> list[str]:
    """Return the names of the anomalies that a check finds."""
    return sorted({anomaly.name for anomaly in CHECKS[check](history, "app")})


@pytest.mark.parametrize(
    ("shown", "anomalies"),
    [
        ("aab", []),
        ("aba", []),
        ("ab", ["lost"]),
        ("aa", ["lost"]),
        ("aaab", ["phantom"]),
        ("aabc", ["phantom"]),
    ],
)
def test_outputs_are_compared_with_those_of_a_run_without_a_fault(
    shown: str, anomalies: list[str]
) -> None:
    """Each key shows the same values in the same order; a declared field may differ."""
    assert found("relation", story(shown=shown)) == anomalies


def test_an_output_twice_is_a_duplicate() -> None:
    """The same value again is no state that is still to come."""
    history = story(shown="a", answers="a", inputs="a")
    history.add(record("out", 1, "a", {"nth": 0, "at": "later"}))

    assert found("relation", history) == ["duplicated"]


def test_what_came_of_an_aborted_record_has_its_name() -> None:
    """A key that stands in aborted records alone has no right output."""
    history = story(aborted="c", shown="aabc")

    assert found("relation", history) == ["uncommitted-visible"]


@pytest.mark.parametrize(
    ("committed", "anomalies"), [(3, []), (2, ["ahead-of-commit"]), (1, ["ahead-of-commit"])]
)
def test_the_prefix_rule_counts_inputs(committed: int, anomalies: list[str]) -> None:
    """The n-th output of a key is that of its n-th input."""
    cut = Committed(at_ms=1, application="app", offsets={"in-0": committed}, stable_ms=0, down=True)

    assert found("fold", story(says=cut)) == anomalies


def test_without_as_many_outputs_as_inputs_there_is_no_prefix_rule() -> None:
    """Nobody can say what a committed offset covers; the relation is still judged."""
    # No run was on these two alone.
    cut = Committed(at_ms=1, application="app", offsets={"in-0": 2}, stable_ms=0, down=True)
    history = story(answers="ab", shown="ab", says=cut)

    with pytest.raises(NotOffered, match="more or fewer outputs than inputs"):
        CHECKS["fold"](history, "app")
    assert found("relation", story(answers="ab", shown="ab")) == []


@pytest.mark.parametrize("more", [{}, LAST])
@pytest.mark.parametrize(
    ("shown", "anomalies"),
    [
        ("a", []),
        ("", ["behind-commit"]),
        ("aa", ["ahead-of-commit"]),
        ("ab", ["ahead-of-commit"]),
    ],
)
def test_a_run_on_the_committed_input_says_what_has_to_be_visible(
    shown: str, anomalies: list[str], more: dict[str, bool]
) -> None:
    """A key has an output for each batch: three inputs give two, and two give one."""
    history = story(inputs="aaab", answers="aab", shown=shown, **more)
    cut_off(history, "a", **more)

    assert found("fold", history) == anomalies


@pytest.mark.parametrize(
    ("shown", "anomalies"),
    [("a", []), ("ab", []), ("aa", []), ("aaa", ["phantom"]), ("b", ["behind-commit"])],
)
def test_outputs_that_may_lead_are_as_far_as_the_committed_input(
    shown: str, anomalies: list[str]
) -> None:
    """At least once, a later value is right, and an earlier one is not."""
    history = at_least_once(story(inputs="aaab", answers="aab", shown=shown))
    cut_off(history, "a")

    assert found("fold", history) == anomalies


def test_outputs_that_may_lead_have_no_place_among_last_values() -> None:
    """Nobody knows which values are later."""
    history = at_least_once(story(inputs="aaab", answers="aab", shown="ab", **LAST))
    cut_off(history, "a", **LAST)

    with pytest.raises(NotOffered, match="more or fewer outputs than inputs"):
        CHECKS["fold"](history, "app")


def test_an_input_that_was_not_asked_has_no_right_outputs() -> None:
    """An answer to another input says nothing."""
    history = story()
    history.add(record("in", 7, "a", {"number": 7}))

    with pytest.raises(NotOffered, match="not run on this input"):
        CHECKS["relation"](history, "app")


def test_runs_with_nothing_in_common_have_no_right_outputs() -> None:
    """A difference without a fault cannot be held against a run with one."""
    with pytest.raises(NotOffered, match="two runs without a fault"):
        CHECKS["relation"](story(is_ordered=False), "app")


def test_a_fold_that_skips_states_is_not_compared() -> None:
    """After a fault it may show others of its states, which is no anomaly."""
    fold = CONTRACT.model_copy(update={"shape": "fold"})

    assert found("relation", story(contract=fold)) == []
    with pytest.raises(NotOffered, match="skip other states"):
        CHECKS["relation"](story(answers="ab", shown="ab", contract=fold), "app")


@pytest.mark.parametrize(
    ("shown", "anomalies"), [("aaaab", []), ("aaab", ["lost"]), ("aaaabb", ["phantom"])]
)
def test_a_fold_that_emits_every_state_is_compared(shown: str, anomalies: list[str]) -> None:
    """Each state of the run without a fault is due, since the design says so."""
    fold = CONTRACT.model_copy(update={"shape": "fold"})
    told = story(answers="aaaab", shown=shown, contract=fold)
    declared = BEGUN.model_copy(update={"emits": "every-state"})
    history = History([declared, *list(told.events)[1:]])

    assert found("relation", history) == anomalies


@pytest.mark.parametrize(
    ("shown", "anomalies"),
    [
        ("aab", []),
        ("aaab", ["lost"]),  # ends at another value
        ("ab", ["lost"]),
        ("aa", ["lost"]),
        ("", ["lost"]),
        ("aabc", ["phantom"]),
    ],
)
def test_the_last_value_of_each_key_is_compared_alone(shown: str, anomalies: list[str]) -> None:
    """Each key ends at the same value; the numbers of outputs differ without a fault."""
    assert found("relation", story(shown=shown, **LAST)) == anomalies


def test_values_before_the_last_one_are_any_that_it_likes() -> None:
    """Others, more of them, or the last one early are no anomalies."""
    history = story(shown="", **LAST)
    history.add_all(
        record("out", offset, "a", {"nth": nth, "at": offset})
        for offset, nth in enumerate((1, 7, 0, 0, 1))
    )
    history.add(record("out", 9, "b", {"nth": 0, "at": 9}))

    assert found("relation", history) == []


NAMED = CONTRACT.model_copy(update={"identity": "$.order", "unique": {"orders": "$.number"}})


def with_identities(answers: str, shown: str, *more: Any, contract: Contract = NAMED) -> History:
    """Return a history of one key in which each digit is the output of an order."""
    history = story(inputs="aaa", answers="", shown="", contract=contract)
    for topic, orders in (("asked", answers), ("out", shown)):
        history.add_all(
            record(topic, offset, "a", {"order": int(order), "at": f"{topic}{offset}"})
            for offset, order in enumerate(orders)
        )
    for event in more:
        history.add(event)
    return history


@pytest.mark.parametrize(
    ("shown", "anomalies"),
    [
        ("012", []),
        ("210", []),  # in another order
        ("02", ["lost"]),
        ("0122", ["duplicated"]),
        ("0123", ["phantom"]),
        ("", ["lost"]),
    ],
)
def test_outputs_with_an_identity_are_compared_in_any_order(
    shown: str, anomalies: list[str]
) -> None:
    """Each of them comes once, as in the run without a fault."""
    assert found("relation", with_identities("102", shown)) == anomalies


@pytest.mark.parametrize(
    ("shown", "anomalies"),
    [
        ("0", []),
        ("", ["behind-commit"]),
        ("02", ["ahead-of-commit"]),
        ("2", ["ahead-of-commit", "behind-commit"]),
    ],
)
def test_an_identity_says_which_input_an_output_is_of(shown: str, anomalies: list[str]) -> None:
    """Two of three inputs are committed, and nothing comes of the second one."""
    cut = Committed(at_ms=1, application="app", offsets={"in-0": 2}, stable_ms=0, down=True)

    assert found("fold", with_identities("02", shown, cut)) == anomalies


def test_inputs_of_several_topics_are_told_apart_by_their_identities() -> None:
    """The numbers of a topic are its own, and its name is in the digest."""
    contract = NAMED.model_copy(
        update={"also_reads": ("refunds",), "unique": {"orders": "$.number"}}
    )
    told = with_identities("012", "012", contract=contract)
    (application,) = told.of(Application)
    topics = application.topics | {"refunds": "back"}
    history = History(
        application.model_copy(update={"topics": topics}) if each is application else each
        for each in told.events
    )
    answer = next(history.of(Answered))
    read = [each for each in history.of(Record) if each.topic == "in"]
    other = record("back", 0, "a", {"number": 9})

    assert answer.inputs == digest_of(read) != digest_of(read, ("in", "back"))
    assert digest_of([*read, other], ("in", "back")) != digest_of([*read, other], ("back", "in"))


def test_an_identity_that_no_input_has_needs_a_run_on_the_committed_input() -> None:
    """Nobody else can say what a committed offset covers."""
    cut = Committed(at_ms=1, application="app", offsets={"in-0": 2}, stable_ms=0, down=True)

    with pytest.raises(NotOffered, match="committed offset covers"):
        CHECKS["fold"](with_identities("029", "0", cut), "app")


def test_what_came_of_an_aborted_record_is_known_by_its_identity() -> None:
    """Other records of its key are visible."""
    gone = record("in", 100, "a", {"number": 7}, visible=False)

    assert found("relation", with_identities("012", "0127", gone)) == ["uncommitted-visible"]


def test_a_key_in_two_partitions_has_no_last_value() -> None:
    """It was in one without a fault."""
    history = story(**LAST)
    history.add(record("out", 9, "a", {"nth": 1, "at": 9})._replace(partition=1))

    assert found("relation", history) == ["reordered"]


@pytest.mark.parametrize("check", ["below-the-commit", "available"])
def test_a_check_of_each_output_is_not_offered_by_last_values(check: str) -> None:
    """Nobody can say what else should have come."""
    with pytest.raises(NotOffered, match="only the last value of each"):
        CHECKS[check](story(**LAST), "app")


@pytest.mark.parametrize(("nth", "anomalies"), [((0, 1), []), ((1,), []), ((0,), ["late"])])
def test_the_last_value_is_due_in_time(nth: tuple[int, ...], anomalies: list[str]) -> None:
    """Those before it may be skipped."""
    history = by_last_value(*nth)
    history.add(
        InputRested(
            application="app",
            since_ms=0,
            looked_ms=9000,
            tolerance_ms=1000,
            canary_ms=1,
            still_ms=5000,
        )
    )

    assert found("promptly", history) == anomalies


def test_what_shows_no_value_again_has_nothing_twice() -> None:
    """A value that comes again may be another state, or the same one twice."""
    assert found("once", by_last_value(0, 1)) == []
    with pytest.raises(NotOffered, match=r"a shows .* again, .* whether its state was the same"):
        CHECKS["once"](by_last_value(0, 0, 1), "app")


@pytest.mark.parametrize(("nth", "anomalies"), [((0, 1), []), ((0,), ["lost"]), ((1, 0), ["lost"])])
def test_what_did_not_refuse_ends_at_the_last_value(
    nth: tuple[int, ...], anomalies: list[str]
) -> None:
    """A design that has refused shows nothing more."""
    history = by_last_value(*nth)
    assert found("refused-or-right", history) == anomalies
    history.add(
        Instance(at_ms=1, application="app", name="a", event="failed", detail="corrupt: a page")
    )
    assert found("refused-or-right", history) == ["phantom"] * bool(nth)


@pytest.mark.parametrize(
    ("nth", "anomalies", "again"),
    [
        ((0, 1), [], []),
        ((1,), [], []),
        ((0, 0, 1), ["duplicated"], ["duplicated"]),
        ((1, 0, 1), ["reordered"], ["duplicated"]),
        ((0, None, 1), ["phantom"], []),
        ((0, 1, 2), ["phantom"], []),
        ((0,), ["lost"], []),
    ],
)
def test_a_number_that_increases_says_what_comes_again(
    nth: tuple[int | None, ...], anomalies: list[str], again: list[str]
) -> None:
    """It says what comes after a later state, too, and nothing of what is skipped."""
    history = by_last_value(*nth, contract=RISING)

    assert found("relation", history) == anomalies
    assert found("once", history) == again


@pytest.mark.parametrize(
    ("nth", "anomalies"), [((0, 0, 1), []), ((0, 1, 0, 1), ["reordered"]), ((0, 1, 1), [])]
)
def test_a_number_steps_back_after_a_start_alone(
    nth: tuple[int, ...], anomalies: list[str]
) -> None:
    """An output may come again under at_least_once."""
    assert found("relation", at_least_once(by_last_value(*nth, contract=RISING))) == anomalies


@pytest.mark.parametrize(
    ("nth", "anomalies"), [((0, 1), []), ((1,), []), ((0,), ["behind-commit"])]
)
def test_a_number_says_how_far_outputs_are_that_may_lead(
    nth: tuple[int, ...], anomalies: list[str]
) -> None:
    """Each key has to be as far as the run on the two records that are committed."""
    history = by_last_value(*nth, contract=RISING)
    cut_off(history, "aa", **LAST)

    assert found("fold", at_least_once(history)) == anomalies


@pytest.mark.parametrize(
    ("contract", "anomaly"), [(RISING, "ahead-of-commit"), (CONTRACT, "behind-commit")]
)
def test_a_number_says_that_an_output_is_ahead(contract: Contract, anomaly: str) -> None:
    """Without it a value that the committed input does not give may be any other one."""
    history = by_last_value(0, 2, contract=contract)
    cut_off(history, "aa", **LAST)

    assert anomaly in found("fold", history)


def test_a_number_begins_anew_behind_a_tombstone() -> None:
    """The states of a key that was deleted are others."""
    history = story(inputs="aaa", answers="aa", shown="aa", contract=RISING, **LAST)
    for topic in ("asked", "out"):
        history.add_all([record(topic, 5, "a", None), record(topic, 6, "a", {"nth": 0})])

    assert found("relation", history) == []
    assert found("once", history) == []
    history.add(record("out", 7, "a", {"nth": 0}))
    assert found("once", history) == ["duplicated"]


def test_a_number_that_does_not_increase_without_a_fault_is_none() -> None:
    """The row is not judged, and says where it stays."""
    same = CONTRACT.model_copy(update={"increasing": "$.number"})
    with pytest.raises(NotOffered, match=r"`increasing` is \$\.number, .* is no number for a"):
        found("relation", by_last_value(0, 1, contract=same))
    history = story(answers="ab", contract=RISING, **LAST)
    history.add_all([record("asked", 5, "a", {"nth": 0})])
    with pytest.raises(NotOffered, match="without a fault it is 0 for a after 0"):
        found("relation", history)


def by_last_value(*nth: int | None, contract: Contract = CONTRACT) -> History:
    """Return a history of last values in which key a shows these states."""
    history = story(shown="", contract=contract, **LAST)
    history.add_all(
        record("out", offset, "a", {"nth": each, "at": offset}) for offset, each in enumerate(nth)
    )
    history.add(record("out", 90, "b", {"nth": 0, "at": 90}))
    return history


def test_topics_of_a_run_without_a_fault_are_the_harnesss() -> None:
    """The check of side effects does not hold them against the application."""
    history = story()
    answer = next(history.of(Answered))

    assert set(answer.topics) == {"asked", "copy"}
    assert view_of(history, "app").program.topics == {"orders": "input", "costs": "output"}


@pytest.mark.parametrize(
    ("one", "other", "unstable", "is_ordered"),
    [
        ({"n": 1}, {"n": 1}, (), True),
        ({"n": 1, "id": 5}, {"n": 1, "id": 6}, ("$.id",), True),
        ({"a": {"b c": 1}}, {"a": {"b c": 2}}, ("$.a['b c']",), True),
        ({"n": [1, 2]}, {"n": [1, 3]}, ("$.n",), True),
        (1, 2, (), False),
        ({"n": 1}, {"m": 1}, (), False),
    ],
)
def test_what_differs_between_two_runs(
    one: Any, other: Any, unstable: tuple[str, ...], is_ordered: bool
) -> None:
    """A field that differs is unstable; if all of a value does, nothing is compared."""
    first, second = (by_key(PLAIN, [record("t", 0, "k", each)]) for each in (one, other))

    found = difference(CONTRACT, first, second)

    assert (found.unstable, found.is_ordered) == (unstable, is_ordered)


def test_the_types_of_an_unstable_field_are_those_of_both_runs() -> None:
    """A field that is null in one run and a number in the other may be either later."""
    first, second = (by_key(PLAIN, [record("t", 0, "k", {"n": n})]) for n in (None, 5))

    assert difference(CONTRACT, first, second).types == (("null", "number"),)


def test_a_history_without_types_compares_none() -> None:
    """It was written before they were noted."""
    history = story(shown="", answers="a", inputs="a", unstable=("$.nth",))
    history.add(record("out", 0, "a", {"nth": None, "at": 0}))

    assert found("relation", history) == []


@pytest.mark.parametrize(
    ("other", "is_by_last_value"),
    [([1, 5], True), ([5], True), ([5, 1], False), ([], False)],
)
def test_another_number_of_outputs_leaves_the_last_values(
    other: list[int], is_by_last_value: bool
) -> None:
    """They have to be the same in both runs, and so do the keys."""
    first = by_key(PLAIN, [record("t", n, "k", {"n": n, "at": 1}) for n in (1, 3, 5)])
    second = by_key(PLAIN, [record("t", n, "k", {"n": n, "at": 2}) for n in other])

    found = difference(CONTRACT, first, second)

    assert not found.is_ordered
    assert found.is_by_last_value == bool(other)
    assert found.unstable == (("$.at",) if is_by_last_value else ("$.at", "$.n") if other else ())


def test_states_that_differ_since_others_were_skipped_have_no_unstable_fields() -> None:
    """Two runs may show as many of them by chance."""
    one, other = ({b"a": [b'{"sum": %d}' % each, b'{"sum": 9}']} for each in (1, 2))

    assert difference(PLAIN, one, other).unstable == ("$.sum",)
    assert difference(PLAIN, one, other, may_skip=True) == Difference((), False, True)


def test_bytes_are_compared_as_they_are() -> None:
    """They have no fields, so that any difference ends the comparison."""
    contract = CONTRACT.model_copy(update={"format": "bytes"})
    first, second = (by_key(PLAIN, outputs(topic, "a")) for topic in ("t", "u"))

    assert difference(contract, first, first).is_ordered
    assert not difference(contract, first, second).is_ordered


def test_an_unstable_field_is_not_compared() -> None:
    """It has a mask in its place, wherever it stands; a tombstone has none."""
    one, other = (record("t", 0, "k", {"id": each, "n": [1]}) for each in (1, 2))

    unstable = {"$.id": frozenset({"number"})}
    assert value_of(CONTRACT, unstable, one) == value_of(CONTRACT, unstable, other)
    assert value_of(CONTRACT, {}, one) != value_of(CONTRACT, {}, other)
    assert value_of(CONTRACT, unstable, record("t", 0, "k", None)) == GONE


@pytest.mark.parametrize("clock", [None, "2026-01-01", True, [], {}])
def test_an_unstable_field_keeps_its_type(clock: Any) -> None:
    """A clock that becomes another thing after a fault is no clock."""
    history = story(
        shown="a",
        answers="a",
        inputs="a",
        unstable=("$.now",),
        types=(("number",),),
        contract=PLAIN,
    )
    asked, shown = (record(topic, 9, "a", {"now": 5, "nth": 0}) for topic in ("asked", "out"))
    numbers = History([*history.events[:3], asked, *history.of(Answered), shown])
    assert found("relation", numbers) == []

    other = record("out", 9, "a", {"now": clock, "nth": 0})
    assert "phantom" in found("relation", History([*numbers.events[:-1], other]))


def test_a_digest_is_of_what_is_read_in_its_order() -> None:
    """Offsets do not count, since gaps say nothing; order, keys and values do."""
    records = [record("in", offset, "a", offset) for offset in range(2)]
    apart = [each._replace(offset=5 * each.offset) for each in records]
    turned = [each._replace(offset=-each.offset) for each in records]

    assert digest_of(records) == digest_of(apart)
    assert digest_of(records) != digest_of(turned)


def test_the_fields_of_an_envelope_are_compared() -> None:
    """A relay's chain differs between two runs, and the rest of its envelope does not."""
    contract = CONTRACT.model_copy(update={"format": "envelope", "ignore": ()})

    def envelope(offset: int, name: str = "e1") -> bytes:
        return Envelope(id=name, chain=[Hop(topic="in", offset=offset)]).SerializeToString()

    found = difference(contract, {b"a": [envelope(1)]}, {b"a": [envelope(2)]})
    assert found == Difference(("$.chain",), is_ordered=True, types=(("array",),))

    unstable = dict(zip(found.unstable, map(frozenset, found.types), strict=True))

    def value(data: bytes) -> tuple[object, ...]:
        return value_of(contract, unstable, Record("out", 0, 0, 0, b"a", data))

    assert value(envelope(1)) == value(envelope(2))
    assert value(envelope(1)) != value(envelope(1, "e2"))
    with pytest.raises(Unreadable, match="declared as envelope"):
        value(b"\xff")


def test_repeats_below_the_commit_need_the_input_of_each_output() -> None:
    """If a key has more outputs than inputs, nobody can say which repeats are legal."""
    cut = Committed(at_ms=0, application="app", offsets={"in-0": 3}, stable_ms=0, down=True)
    history = story(answers="aabb", shown="aabb", says=cut)

    with pytest.raises(NotOffered, match="more or fewer outputs than inputs"):
        CHECKS["below-the-commit"](history, "app")
