"""Models of several inputs: right is what some order of their records gives."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from histories import EPOCH_MS, begun
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.checks import CHECKS
from upheld.checks.view import view_of
from upheld.errors import UsageProblem
from upheld.history import History
from upheld.history.events import (
    Application,
    Committed,
    Contract,
    FurtherOutput,
    Instance,
    ModelFile,
    Record,
)
from upheld.models import Fold, Map, Model, Output
from upheld.models import Record as Given
from upheld.programs import interleavings
from upheld.programs.interleavings import TooMany, shared_out
from upheld.programs.modelled import first_difference, offer
from upheld.protocol.model_file import Loaded
from upheld.verdicts import Inconclusive, NotOffered

BEGUN = begun(design="refunds", local_state=False, seed=0)
INPUTS = ("orders", "refunds")
TOPICS = {"orders": "in-orders", "refunds": "in-refunds", "amounts": "out"}


def amount(record: Given) -> list[Output]:
    """Give what a record comes to, and what it is of."""
    return [Output(record.key, {"of": record.input, "cents": record.value})]


def applied(digits: str, record: Given) -> tuple[str, list[Output]]:
    """Write down the records in their order."""
    digits += str(record.value)
    return digits, [Output(record.key, digits)]


def summed(total: int, record: Given) -> tuple[int, list[Output]]:
    """Add orders, and take refunds away."""
    total += record.value if record.input == "orders" else -record.value
    return total, [Output(record.key, total)]


def large(total: int, record: Given) -> tuple[int, list[Output]]:
    """Say a sum that has just become large."""
    _, outputs = summed(total, record)
    return outputs[0].value, outputs if total < 10 <= outputs[0].value else []


AMOUNTS = Map(amount, inputs=INPUTS)
DIGITS = Fold(applied, initial="", inputs=INPUTS)
SUM = Fold(summed, initial=0, inputs=INPUTS)
LARGE = Fold(large, initial=0, inputs=INPUTS)


def order(offset: int, value: Any, **fields: Any) -> Record:
    """Return an order."""
    return read("in-orders", offset, value, **fields)


def refund(offset: int, value: Any, **fields: Any) -> Record:
    """Return a refund."""
    return read("in-refunds", offset, value, **fields)


def read(topic: str, offset: int, value: Any, key: str = "a", **fields: Any) -> Record:
    """Return a record of an input."""
    record = Record(topic, 0, offset, EPOCH_MS, key.encode(), json.dumps(value).encode())
    return record._replace(**fields)


def story(
    model: Model,
    inputs: list[Record],
    shown: Iterable[Any],
    *,
    mode: Any = "exactly_once",
    restarts_after: int | None = None,
    **contract: Any,
) -> History:
    """Return a history of an application with a model of several inputs.

    Args:
        model: The model.
        inputs: The records of its inputs.
        shown: The values of its output, or pairs of a key and a value.
        mode: Its mode.
        restarts_after: After how many outputs it was started again; None if it was not.
        contract: Other fields of its contract.
    """
    loaded = Loaded("model.py:MODEL", model, Path("model.py"), f"the text of {id(model)}")
    offer(loaded)
    named = ModelFile(
        place=loaded.place, sha256=loaded.sha256, reads="json", also_reads={"refunds": "json"}
    )
    fields = {"reads": "orders", "also_reads": ("refunds",), "writes": "amounts", "format": "json"}
    history = History([BEGUN])
    history.add(
        Application(
            name="app",
            application_id="app",
            program="ledger",
            mode=mode,
            topics={**TOPICS, "alerts": "out-alerts"},
            parameters={"commit_interval_ms": 100},
            transaction_timeout_ms=3000,
            contract=Contract.model_validate({"name": "app", **fields, "model": named, **contract}),
        )
    )
    history.add_all(inputs)
    outputs = [_shown(offset, each) for offset, each in enumerate(shown)]
    history.add(_started())
    history.add_all(outputs[:restarts_after])
    if restarts_after is not None:
        history.add(_started())
        history.add_all(outputs[restarts_after:])
    return history


def _started() -> Instance:
    return Instance(at_ms=0, application="app", name="a", event="started")


def _shown(offset: int, each: Any) -> Record:
    key, value = each if isinstance(each, tuple) else ("a", each)
    return Record("out", 0, offset, EPOCH_MS, key.encode(), json.dumps(value).encode())


def found(check: str, history: History) -> list[str]:
    """Return the names of the anomalies that a check finds."""
    return [anomaly.name for anomaly in CHECKS[check](history, "app")]


def at_the_end(history: History, **offsets: int) -> History:
    """Add the committed offsets of both inputs, with every instance down."""
    committed = {f"in-{role}-0": offset for role, offset in offsets.items()}
    history.add(Committed(at_ms=0, application="app", offsets=committed, stable_ms=0, down=True))
    return history


RECORDS = [order(0, 1), order(1, 2), refund(0, 3), refund(1, 4)]


def of(*values: int) -> list[dict[str, Any]]:
    """Return outputs of the map; orders are 1 and 2, refunds 3 and 4."""
    return [{"of": "orders" if value < 3 else "refunds", "cents": value} for value in values]


@pytest.mark.parametrize(
    ("values", "anomalies"),
    [
        ((1, 2, 3, 4), []),
        ((3, 1, 4, 2), []),
        ((3, 4, 1, 2), []),
        ((1, 2, 3), ["lost"]),
        ((1, 3, 3, 2, 4), ["duplicated"]),
        ((1, 3, 2, 4, 3), ["duplicated", "lost"]),
        ((2, 3, 1, 4), ["reordered", "reordered", "lost"]),
        ((1, 4, 2), ["lost"]),
        ((1, 2, 3, 5, 4), ["phantom"]),
    ],
)
def test_outputs_of_a_map_are_in_the_order_of_each_partition(
    values: tuple[int, ...], anomalies: list[str]
) -> None:
    """Any order between the inputs is right, and within each of them only one."""
    assert found("relation", story(AMOUNTS, RECORDS, of(*values))) == anomalies


@pytest.mark.parametrize(
    ("values", "anomalies"),
    [
        (("1", "12", "123", "1234"), []),
        (("1", "13", "132", "1324"), []),
        (("3", "34", "341", "3412"), []),
        (("1", "13", "132"), ["lost"]),
        (("1", "13", "13", "132", "1324"), ["duplicated"]),
        (("1", "132", "1324"), ["lost"]),
        (("1", "13", "31", "312", "3124"), ["phantom", "phantom", "phantom", "lost"]),
        (("2", "21", "213", "2134"), ["lost", "duplicated"]),
        (("1", "13", "133", "1332", "13324"), ["duplicated"]),
        (("1", "14", "142", "1423"), ["lost", "duplicated"]),
        (("1", "13", "2", "24"), ["lost"]),
        (("1", "13", "135"), ["phantom", "lost"]),
    ],
)
def test_outputs_of_a_fold_are_those_of_an_interleaving(
    values: tuple[str, ...], anomalies: list[str]
) -> None:
    """A record that counts twice, not at all or out of its order is found."""
    assert found("relation", story(DIGITS, RECORDS, values)) == anomalies


def test_partitions_of_one_input_have_no_mutual_order() -> None:
    """Each of several partitions of one input keeps its own order."""
    by_all = Fold(applied, initial="", key=lambda _: "all", inputs=INPUTS)

    def shown(values: list[str]) -> list[str]:
        inputs = [order(0, 1), order(1, 2), order(0, 5, partition=1), refund(0, 3)]
        return found("relation", story(by_all, inputs, values))

    assert shown(["5", "51", "513", "5132"]) == []
    assert shown(["1", "12", "125", "1253"]) == []
    assert shown(["2", "25", "251", "2513"])[0] == "lost"


def test_an_aborted_record_that_counts_is_named() -> None:
    """Nothing comes of it in any order."""
    inputs = [*RECORDS, order(2, 9, visible=False)]

    assert found("relation", story(DIGITS, inputs, ["1", "19"]))[0] == "uncommitted-visible"
    amounts = [*of(1, 2, 3, 4), {"of": "orders", "cents": 9}]
    assert found("relation", story(AMOUNTS, inputs, amounts)) == ["uncommitted-visible"]


@pytest.mark.parametrize(
    ("values", "orders", "refunds", "anomalies"),
    [
        (("1", "13"), 1, 1, []),
        (("3", "31"), 1, 1, []),
        (("1", "13"), 2, 1, ["behind-commit"]),
        (("1", "13"), 1, 2, ["behind-commit"]),
        (("1", "13"), 1, 0, ["ahead-of-commit"]),
        ((), 1, 0, ["behind-commit"]),
        ((), 0, 0, []),
    ],
)
@pytest.mark.parametrize("kind", ["map", "fold"])
def test_the_prefix_is_of_each_partition(
    kind: str, values: tuple[str, ...], orders: int, refunds: int, anomalies: list[str]
) -> None:
    """The outputs hold just the committed records of both inputs, in any order."""
    shown: Any = values if kind == "fold" else of(*(int(value[-1]) for value in values))
    history = story(DIGITS if kind == "fold" else AMOUNTS, RECORDS, shown)
    at_the_end(history, orders=orders, refunds=refunds)

    assert found("fold", history) == anomalies


def test_records_without_an_output_may_be_read_or_not() -> None:
    """The search passes over records that give the key nothing."""
    inputs = [order(0, 5), order(1, 6), refund(0, 1), refund(1, 0)]

    assert found("relation", story(LARGE, inputs, [11])) == []
    assert found("relation", story(LARGE, inputs, [10])) == []
    assert found("relation", story(LARGE, inputs, [])) == ["lost"]
    for orders, refunds, anomalies in ((2, 0, []), (2, 2, []), (1, 0, ["ahead-of-commit"])):
        history = at_the_end(story(LARGE, inputs, [11]), orders=orders, refunds=refunds)
        assert found("fold", history) == anomalies


@pytest.mark.parametrize("restarts_after", [None, 2])
def test_at_least_once_an_interruption_allows_a_step_back(restarts_after: int | None) -> None:
    """After it the inputs may be read in another order than before."""
    legal: list[list[str]] = [
        ["1", "13", "3", "31", "312", "3124"],
        ["1", "13", "1", "12", "123", "1234"],
        ["1", "12", "1", "12", "123", "1234"],
    ]
    for values in legal:
        history = story(
            DIGITS, RECORDS, values, mode="at_least_once", restarts_after=restarts_after
        )
        assert found("relation", history) == ([] if restarts_after else ["reordered"])
    amounts = of(1, 3, 3, 1, 2, 4)
    history = story(AMOUNTS, RECORDS, amounts, mode="at_least_once", restarts_after=restarts_after)
    assert found("relation", history) == []
    history = story(
        AMOUNTS, RECORDS, of(1, 2, 1, 3, 2, 4), mode="at_least_once", restarts_after=restarts_after
    )
    assert found("relation", history) == ([] if restarts_after else ["reordered"])


def test_a_repeat_right_after_itself_is_legal_at_least_once() -> None:
    """A producer may send a record twice."""
    values = ["1", "1", "13", "13", "132", "1324"]

    assert found("relation", story(DIGITS, RECORDS, values, mode="at_least_once")) == []


def test_a_fold_that_may_skip_shows_its_last_state() -> None:
    """States in between may be left out in any order of the inputs."""
    skipping = Fold(applied, initial="", inputs=INPUTS, may_skip=True)

    assert found("relation", story(skipping, RECORDS, ["13", "1324"])) == []
    assert found("relation", story(skipping, RECORDS, ["3412"])) == []
    assert found("relation", story(skipping, RECORDS, ["13", "132"])) == ["lost"]
    assert found("relation", story(skipping, RECORDS, ["31", "1324"])) == ["reordered", "lost"]


def test_the_states_are_those_of_an_order_that_explains_the_outputs() -> None:
    """Other checks see each output at the state of the record that it comes of."""
    view = view_of(story(DIGITS, RECORDS, ["3", "31", "312", "3124"]), "app")

    assert [state.value for state in view.states[b"a"]] == [
        ('"3"',),
        ('"31"',),
        ('"312"',),
        ('"3124"',),
    ]
    assert [output.index for output in view.outputs[b"a"]] == [0, 1, 2, 3]
    assert view.is_settled
    assert found("once", story(DIGITS, RECORDS, ["3", "31", "312", "3124"])) == []


def test_outputs_that_both_inputs_give_are_shared_out() -> None:
    """Equal outputs of two inputs are right if there is a way to share them out."""
    alike = Map(lambda record: [Output(record.key, record.value)], inputs=INPUTS)
    inputs = [order(0, "x"), order(1, "y"), refund(0, "x"), refund(1, "z")]

    assert found("relation", story(alike, inputs, ["x", "z", "x", "y"])) == []
    assert found("relation", story(alike, inputs, ["x", "x", "y", "z"])) == []
    assert found("relation", story(alike, inputs, ["x", "x", "x", "y", "z"])) == ["duplicated"]
    assert found("relation", story(alike, inputs, ["x", "y", "z"])) == ["lost"]


def sparse(total: int, record: Given) -> tuple[int, list[Output]]:
    """Give the same few values again and again, and none or two for some records."""
    total = (3 * total + record.value) % 7
    return total, [Output(record.key, total + each) for each in range(total % 3)]


SPARSE = Fold(sparse, initial=1, inputs=INPUTS)


def orders_of(*partitions: list[Record]) -> list[list[Record]]:
    """Return all interleavings of partitions."""
    if not any(partitions):
        return [[]]
    return [
        [records[0], *rest]
        for number, records in enumerate(partitions)
        if records
        for rest in orders_of(*partitions[:number], records[1:], *partitions[number + 1 :])
    ]


def given_by(model: Fold[Any], records: list[Record]) -> tuple[Any, ...]:
    """Return the values that a model gives for records in an order."""
    state = model.initial
    values = list[Any]()
    for record in records:
        role = record.topic.removeprefix("in-")
        state, outputs = model.step(state, Given("a", json.loads(record.value or b""), input=role))
        values += (output.value for output in outputs)
    return tuple(values)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_right_is_what_an_interleaving_gives_and_nothing_else(data: st.DataObject) -> None:
    """The search says the same as a list of all interleavings."""
    model = data.draw(st.sampled_from([DIGITS, SUM, LARGE, SPARSE]))
    values = st.lists(st.integers(0, 3), max_size=3)
    orders = [order(offset, each) for offset, each in enumerate(data.draw(values))]
    refunds = [refund(offset, each) for offset, each in enumerate(data.draw(values))]
    legal = {given_by(model, each) for each in orders_of(orders, refunds)}
    shown = list(data.draw(st.sampled_from(sorted(legal))))
    known = [value for each in sorted(legal) for value in each]
    for _ in range(data.draw(st.integers(0, 2)) if known else 0):
        place = data.draw(st.integers(0, len(shown)))
        shown[place : place + data.draw(st.integers(0, 1))] = data.draw(
            st.lists(st.sampled_from(known))
        )[:1]
    history = story(model, [*orders, *refunds], shown)

    if orders or refunds:
        assert (found("relation", history) == []) is (tuple(shown) in legal)
    counts = data.draw(st.integers(0, len(orders))), data.draw(st.integers(0, len(refunds)))
    at_the_end(history, orders=counts[0], refunds=counts[1])
    holds = [
        (each, rest)
        for each in range(len(orders) + 1)
        for rest in range(len(refunds) + 1)
        for way in orders_of(orders[:each], refunds[:rest])
        if given_by(model, way) == tuple(shown)
    ]
    if holds:  # else it is a matter of the relation
        assert (found("fold", history) == []) is (counts in holds)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_after_an_interruption_any_order_of_what_is_left_is_right(data: st.DataObject) -> None:
    """At least once a key may go on from any state that it had."""
    model = data.draw(st.sampled_from([DIGITS, SUM, LARGE, SPARSE]))
    values = st.lists(st.integers(0, 3), min_size=1, max_size=3)
    orders = [order(offset, each) for offset, each in enumerate(data.draw(values))]
    refunds = [refund(offset, each) for offset, each in enumerate(data.draw(values))]
    way = data.draw(st.sampled_from(orders_of(orders, refunds)))
    dies = data.draw(st.integers(0, len(way)))
    kept = way[: data.draw(st.integers(0, dies))]
    left = ([each for each in records if each not in kept] for records in (orders, refunds))
    again = [*kept, *data.draw(st.sampled_from(orders_of(*left)))]
    first = given_by(model, way[:dies])
    shown = [*first, *given_by(model, again)[len(given_by(model, kept)) :]]
    inputs = [*orders, *refunds]
    history = story(model, inputs, shown, mode="at_least_once", restarts_after=len(first))

    assert found("relation", history) == []


def test_a_rare_output_among_many_records_is_found() -> None:
    """A key with hundreds of records needs no search of all their orders."""
    calls = 0

    def large(total: int, record: Given) -> tuple[int, list[Output]]:
        nonlocal calls
        calls += 1
        is_large = record.input == "orders" and record.offset % 25 == 24
        return total + record.value, [Output("a", record.offset)] if is_large else []

    model = Fold(large, initial=0, inputs=INPUTS)
    inputs = [each(offset, 1) for offset in range(300) for each in (order, refund)]
    shown = [*range(24, 300, 25)]

    assert found("relation", story(model, inputs, shown)) == []
    assert found("fold", at_the_end(story(model, inputs, shown[:6]), orders=150, refunds=200)) == []
    assert calls < 10_000
    assert found("relation", story(model, inputs[:120], shown[:1])) == ["lost"]


def test_too_many_candidates_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is inconclusive beyond the bound, and says which one it is."""
    monkeypatch.setattr(interleavings, "MOST_CANDIDATES", 3)
    last_alone = Fold(applied, initial="", inputs=INPUTS, may_skip=True)
    history = story(last_alone, RECORDS, ["1324"])

    with pytest.raises(Inconclusive, match="a: the interleavings of its inputs give more than 3"):
        CHECKS["relation"](history, "app")
    with pytest.raises(TooMany, match="in more than 3 ways"):
        shared_out([[("x",)] * 9, [("x",)] * 9], [(("x",), 0)] * 9, exactly_once=True)


def test_too_many_steps_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is inconclusive, too, if its model had to be asked too often."""
    monkeypatch.setattr(interleavings, "LEAST_STEPS", 4)
    monkeypatch.setattr(interleavings, "MOST_STEPS", 1)

    with pytest.raises(Inconclusive, match="more than 4 steps of the model"):
        CHECKS["relation"](story(DIGITS, RECORDS, ["1", "12", "123", "1234"]), "app")
    assert found("relation", story(DIGITS, RECORDS, ["1", "12", ("c", "5")])) == ["phantom"]


def test_several_orders_do_not_say_which_input_was_repeated() -> None:
    """Where two orders explain an output, nobody knows whose it is."""
    inputs = [order(0, 1), refund(0, -1), order(1, 1)]
    history = at_the_end(story(SUM, inputs, [1, 2], mode="at_least_once"), orders=1, refunds=0)
    history.add(_shown(2, 3))

    with pytest.raises(NotOffered, match="several orders of its inputs may explain"):
        CHECKS["below-the-commit"](history, "app")
    assert found("relation", history) == []


def test_an_output_key_hangs_on_one_state() -> None:
    """Nothing orders two states of several inputs."""

    def to_all(total: int, record: Given) -> tuple[int, list[Output]]:
        return total + record.value, [Output("all", total + record.value)]

    history = story(Fold(to_all, initial=0, inputs=INPUTS), [order(0, 1), order(1, 2, key="b")], [])

    with pytest.raises(UsageProblem, match="of the key 'all' that hangs on two states, of 'a' and"):
        CHECKS["relation"](history, "app")


def test_an_output_key_does_not_hang_on_the_order() -> None:
    """A key that only another order gives cannot be told from a foreign one."""

    def to_first(seen: str, record: Given) -> tuple[str, list[Output]]:
        first = seen or record.input
        return first, [Output(f"{record.key}-{first}", record.value)]

    model = Fold(to_first, initial="", inputs=INPUTS)
    history = story(model, [order(0, 1), refund(0, 3)], [("a-orders", 1), ("a-orders", 3)])

    with pytest.raises(UsageProblem, match="'a-refunds' only if its inputs are read in another"):
        CHECKS["relation"](history, "app")


def test_each_output_of_several_inputs_is_judged() -> None:
    """An output says to which topic it goes, and an anomaly names it."""

    def both(total: int, record: Given) -> tuple[int, list[Output]]:
        total, (output,) = summed(total, record)
        return total, [Output("a", output.value, to="amounts"), Output("a", b"!", to="alerts")]

    model = Fold(both, initial=0, inputs=INPUTS, outputs=("amounts", "alerts"))
    further = (FurtherOutput(writes="alerts", format="bytes"),)
    history = story(model, [order(0, 5), refund(0, 2)], [-2, 3], further=further)
    assert found("relation", history) == ["lost"]
    alerts = [Record("out-alerts", 0, offset, EPOCH_MS, b"a", b"!") for offset in range(2)]
    history.add(alerts[0])
    (anomaly,) = CHECKS["relation"](history, "app")
    assert (anomaly.name, anomaly.text) == ("lost", "output alerts: a ends before 1 of its outputs")
    history.add(alerts[1])
    assert found("relation", history) == []
    torn = at_the_end(history, orders=1, refunds=0)
    assert set(found("fold", torn)) == {"ahead-of-commit"}


@pytest.mark.parametrize(
    ("model", "right", "wrong"),
    [
        (DIGITS, ["3", "31", "312", "3124"], ["3", "31", "313", "3132"]),
        (AMOUNTS, of(3, 1, 2, 4), of(3, 2, 1, 4)),
    ],
)
def test_the_doctor_is_told_the_first_difference(
    model: Model, right: list[Any], wrong: list[Any]
) -> None:
    """It compares a run without a fault by some order of the inputs, too."""
    contract = story(model, RECORDS, []).application("app").contract
    assert contract
    own = contract
    loaded = Loaded("model.py:MODEL", model, Path("model.py"), "")

    def differs(values: list[Any]) -> bool:
        outputs = [_shown(offset, each) for offset, each in enumerate(values)]
        return first_difference(own, loaded, RECORDS, outputs, TOPICS) is not None

    assert not differs(right)
    for values in (wrong, right[:-1], [*right, right[-1]]):
        assert differs(values)
