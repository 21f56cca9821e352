"""An application is judged by a model that a user wrote."""

import json
from pathlib import Path
from typing import Any

import pytest
from histories import EPOCH_MS, begun

from upheld.checks import CHECKS
from upheld.errors import UsageProblem
from upheld.history import History
from upheld.history.events import (
    Application,
    Committed,
    Contract,
    FurtherOutput,
    ModelFile,
    Record,
)
from upheld.models import Fold, Map, Model, Output
from upheld.models import Record as Given
from upheld.programs import modelled
from upheld.programs.modelled import (
    Modelled,
    Steps,
    demand_model,
    first_difference,
    offer,
    offer_all,
    program,
    value_of,
)
from upheld.protocol.model_file import Loaded

BEGUN = begun(design="orders", local_state=False, seed=0)


def doubled(record: Given) -> list[Output]:
    """Give twice the number of a record."""
    return [Output(record.key, {"is": 2 * record.value["n"]})]


def summed(total: int, record: Given) -> tuple[int, list[Output]]:
    """Give the sum of the numbers so far."""
    total += record.value["n"]
    return total, [Output(record.key, {"sum": total})]


# As somebody calls them who has no type checker.
ANY_MAP: Any = Map
ANY_FOLD: Any = Fold
DOUBLE = Map(doubled)
SUM = Fold(summed, initial=0)


def contract_of(model: Model, **fields: Any) -> tuple[Contract, Loaded]:
    """Return a contract with a model, which this process knows from here on."""
    found = Loaded("orders.py:ORDERS", model, Path("orders.py"), f"the text of {id(model)}")
    offer(found)
    named = ModelFile(place=found.place, sha256=found.sha256, reads="json")
    contract = Contract(name="orders", reads="orders", writes="totals", format="json", model=named)
    return contract.model_copy(update=fields), found


def read(offset: int, key: str, number: int, *, partition: int = 0, visible: bool = True) -> Record:
    """Return a record of the input."""
    value = json.dumps({"n": number}).encode()
    return Record("in", partition, offset, EPOCH_MS, key.encode(), value, (), visible)


def shown(offset: int, key: str, value: Any) -> Record:
    """Return a record of the output."""
    data = None if value is None else json.dumps(value).encode()
    return Record("out", 0, offset, EPOCH_MS, key.encode(), data)


def story(model: Model, inputs: list[Record], outputs: list[Any], **fields: Any) -> History:
    """Return a history of an application with a model.

    Outputs are pairs of a key and a value.
    """
    contract, _ = contract_of(model, **fields)
    history = History([BEGUN])
    history.add(
        Application(
            name="app",
            application_id="app",
            program="ledger",
            mode="exactly_once",
            topics={"orders": "in", "totals": "out"},
            parameters={"commit_interval_ms": 100},
            transaction_timeout_ms=3000,
            contract=contract,
        )
    )
    history.add_all(inputs)
    history.add_all([shown(offset, *output) for offset, output in enumerate(outputs)])
    return history


def found(check: str, history: History) -> list[str]:
    """Return the names of the anomalies that a check finds."""
    return [anomaly.name for anomaly in CHECKS[check](history, "app")]


INPUTS = [read(0, "a", 1), read(1, "b", 5), read(2, "a", 10), read(3, "a", 100)]
SUMS = [("a", {"sum": 1}), ("b", {"sum": 5}), ("a", {"sum": 11}), ("a", {"sum": 111})]


@pytest.mark.parametrize(
    ("outputs", "anomalies"),
    [
        (SUMS, []),
        (SUMS[:-1], ["lost"]),
        ([*SUMS, SUMS[-1]], ["duplicated"]),
        ([SUMS[2], SUMS[1], SUMS[0], SUMS[3]], ["reordered", "reordered", "reordered"]),
        ([SUMS[0], SUMS[1], SUMS[3]], ["lost"]),
    ],
)
def test_outputs_are_the_states_of_the_model(outputs: list[Any], anomalies: list[str]) -> None:
    """Each key shows what the model gives for its records, in order and once."""
    assert found("relation", story(SUM, INPUTS, outputs)) == anomalies


@pytest.mark.parametrize(
    ("wrong", "name", "source"),
    [
        ({"sum": 121}, "duplicated", "in-0@2"),
        ({"sum": 101}, "lost", "in-0@2"),
        ({"sum": 100}, "lost", "in-0@3"),  # as if nothing had been before
        ({"sum": 1111}, "uncommitted-visible", "in-0@9"),
        ({"sum": 55}, "phantom", "in-0@3"),
    ],
)
def test_a_wrong_state_is_named_by_the_mistake_that_gives_it(
    wrong: Any, name: str, source: str
) -> None:
    """A record that counts twice, not at all, or though it was aborted, is named."""
    aborted = read(9, "a", 1000, visible=False)
    inputs = [INPUTS[0], aborted, *INPUTS[1:]]

    (anomaly, *_) = CHECKS["relation"](story(SUM, inputs, [*SUMS[:-1], ("a", wrong)]), "app")

    assert (anomaly.name, anomaly.source) == (name, source)


def test_each_of_several_equal_outputs_is_due() -> None:
    """A lost output is found, though the one before it says the same."""
    inputs = [read(0, "a", 1), read(1, "a", 1)]

    assert found("relation", story(DOUBLE, inputs, [("a", {"is": 2})] * 2)) == []
    assert found("relation", story(DOUBLE, inputs, [("a", {"is": 2})])) == ["lost"]


def test_wrong_logic_shows_what_is_due() -> None:
    """A value that the model never gives stands beside the state most like it."""

    def priced(record: Given) -> list[Output]:
        return [Output(record.key, {"id": record.offset, "is": 2 * record.value["n"]})]

    outputs = [("a", {"id": 0, "is": 3}), ("a", {"id": 2, "is": 20}), ("a", {"id": 3, "is": 200})]
    history = story(Map(priced), [INPUTS[0], *INPUTS[2:]], outputs)

    (anomaly, *_) = CHECKS["relation"](history, "app")

    assert (anomaly.name, anomaly.expected) == ("phantom", '{"id": 0, "is": 2}')
    assert anomaly.source == "in-0@0"


def test_the_prefix_is_exact() -> None:
    """The committed input says which outputs are due, whatever their number."""

    def both(record: Given) -> list[Output]:
        return [Output(record.key, {"n": record.value["n"], "of": each}) for each in "xy"]

    outputs = [("a", {"n": 1, "of": "x"}), ("a", {"n": 1, "of": "y"})]
    for offset, anomalies in ((1, []), (3, ["behind-commit"]), (0, ["ahead-of-commit"])):
        history = story(Map(both), [INPUTS[0], INPUTS[2]], outputs)
        history.add(
            Committed(at_ms=0, application="app", offsets={"in-0": offset}, stable_ms=0, down=True)
        )

        assert found("fold", history) == anomalies


def test_nothing_comes_of_aborted_records() -> None:
    """An output for an aborted record alone is uncommitted data that became visible."""
    history = story(DOUBLE, [read(0, "a", 1, visible=False)], [("a", {"is": 2})])

    assert found("relation", history) == ["uncommitted-visible"]
    contract, known = contract_of(Map(failing))
    assert Modelled(contract, known).states([read(0, "a", 1, visible=False)]) == {}


def test_a_fold_may_skip_what_is_replaced() -> None:
    """A fold that may skip shows its last state, and any of those before it."""
    skipping = Fold(summed, initial=0, may_skip=True)

    assert found("relation", story(skipping, INPUTS, [SUMS[1], SUMS[3]])) == []
    assert found("relation", story(skipping, INPUTS, [SUMS[1], SUMS[2]])) == ["lost"]


def test_ignored_fields_need_not_be_given() -> None:
    """A field that is not compared is taken out, and no model has to give it."""
    outputs = [("a", {"is": 2, "at": 5, "by": {"host": "x", "v": 1}}), ("a", {"is": 20, "at": 6})]
    inputs = [INPUTS[0], INPUTS[2]]

    assert found("relation", story(DOUBLE, inputs, outputs)) == ["phantom", "phantom", "lost"]
    ignoring = story(DOUBLE, inputs, outputs, ignore=("$.at", "$.by"))
    assert found("relation", ignoring) == []


def test_a_place_in_a_list_stays() -> None:
    """An item of a list that is not compared leaves its place empty."""
    contract, _ = contract_of(DOUBLE, ignore=("$.all[0]", "$.none[0]"))

    assert value_of(contract, shown(0, "a", {"all": [1, 2]})) == ('{"all": [null, 2]}',)


def test_bytes_and_tombstones() -> None:
    """Outputs may be bytes, and None is a tombstone."""

    def raw(record: Given) -> list[Output]:
        return [Output(record.key, b"\xff" if record.value["n"] == 1 else None)]

    contract, model = contract_of(Map(raw), format="bytes")
    outputs = [
        Record("out", 0, 0, EPOCH_MS, b"a", b"\xff"),
        Record("out", 0, 1, EPOCH_MS, b"a", None),
    ]

    assert first_difference(contract, model, [INPUTS[0], INPUTS[2]], outputs) is None


def failing(_: Given) -> list[Output]:
    """Raise."""
    raise KeyError("price")


def changing(seen: list[int], record: Given) -> tuple[list[int], list[Output]]:
    """Change the state in place."""
    seen.append(record.value["n"])
    return seen, []


def emptying(record: Given) -> list[Output]:
    """Change the record in place."""
    record.value.clear()
    return []


COUNT = iter(range(1_000_000))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Map(failing), "raises KeyError: 'price'"),
        (Map(lambda r: [Output(r.key, next(COUNT))]), "gives two answers when it is asked twice"),
        (Fold(changing, initial=[]), "changes in place what it is given, and has to make it anew"),
        (Map(emptying), "changes in place what it is given, and has to make it anew"),
        (Map(lambda r: [Output(r.key, {1, 2})]), "gives {1, 2}, which JSON cannot say"),
        (Map(lambda r: [Output(r.key, float("nan"))]), "gives nan, which JSON cannot say"),
        (Map(lambda r: [Output(r.key, "\ud800")]), "gives '\\ud800', which JSON cannot say"),
        (ANY_MAP(lambda _: [Output(7, 1)]), "gives 7 as a key, which is no text"),
        (ANY_MAP(lambda _: {"is": 1}), "gives {'is': 1}, and outputs are a list of Output"),
        (ANY_MAP(lambda _: None), "gives None, and outputs are a list of Output"),
        (ANY_MAP(lambda _: ["a"]), "gives 'a', and outputs are a list of Output"),
        (ANY_FOLD(lambda *_: [], initial=0), "a fold gives its next state and its outputs"),
        (ANY_FOLD(lambda *_: ({1}, []), initial=0), "gives the state {1}, which JSON cannot say"),
        (
            ANY_FOLD(summed, initial=0, key=lambda _: 5),
            "gives 5 as the key of a state, which is no text",
        ),
    ],
)
def test_a_model_that_cannot_be_judged_by(model: Model, said: str) -> None:
    """One sentence says what it does, and at which record."""
    contract, known = contract_of(model)

    with pytest.raises(UsageProblem) as refused:
        Modelled(contract, known).states(INPUTS)

    assert str(refused.value).startswith("The model orders.py:ORDERS ")
    assert said in str(refused.value)
    assert str(refused.value).endswith(", at the record in-0@0 with the key a.")


@pytest.mark.parametrize("what", ["a state", "an output"])
def test_a_key_hangs_on_one_partition(what: str) -> None:
    """Nothing orders records of two partitions, so no key may hang on both."""
    model: Model = (
        Fold(summed, initial=0, key=lambda _: "all")
        if what == "a state"
        else Map(lambda _: [Output("all", 1)])
    )
    contract, known = contract_of(model)

    with pytest.raises(UsageProblem, match=f"has {what} of the key 'all' that hangs on two part"):
        Modelled(contract, known).states([read(0, "a", 1), read(0, "b", 1, partition=1)])


def test_a_generator_is_a_list_of_outputs() -> None:
    """A step may yield its outputs."""

    def yielding(record: Given) -> Any:
        yield Output(record.key, {"is": 2 * record.value["n"]})

    contract, model = contract_of(Map(yielding))

    states = Modelled(contract, model).states(INPUTS)

    assert [state.value for state in states[b"b"]] == [('{"is": 10}',)]


def test_first_difference() -> None:
    """The doctor is told the first input whose output is not the model's."""
    contract, model = contract_of(SUM)
    outputs = [shown(offset, *output) for offset, output in enumerate(SUMS)]

    assert first_difference(contract, model, INPUTS, outputs) is None
    differing = first_difference(
        contract, model, INPUTS, [*outputs[:2], shown(2, "a", {"sum": 0}), shown(3, "b", 1)]
    )
    assert str(differing) == (
        "for in-0@2 the model gives '{\"sum\": 11}' of the key a, and the application gave "
        "'{\"sum\": 0}'"
    )
    missing = first_difference(contract, model, INPUTS, outputs[:3])
    assert missing
    assert (missing.source, missing.got) == (INPUTS[3], None)
    foreign = first_difference(contract, model, INPUTS, [*outputs, shown(4, "c", 1)])
    assert foreign
    assert (foreign.source, foreign.key) == (None, "c")


def priced(record: Given) -> list[Output]:
    """Give a cost for each record, and an alert for a large one."""
    cost = Output(record.key, record.value["n"], to="totals")
    return [cost, Output(record.key, b"%d" % cost.value, to="alerts")] if cost.value > 9 else [cost]


PRICED = Map(priced, outputs=("totals", "alerts"))
ALERTS = (FurtherOutput(writes="alerts", format="bytes"),)


def alerting(model: Model, totals: list[Any], alerts: list[bytes]) -> History:
    """Return a history of an application with two outputs."""
    history = story(model, INPUTS, totals, further=ALERTS)
    application = history.application("app")
    topics = {**application.topics, "alerts": "out-alerts"}
    events = [
        e.model_copy(update={"topics": topics}) if e is application else e for e in history.events
    ]
    records = (Record("out-alerts", 0, n, EPOCH_MS, b"a", each) for n, each in enumerate(alerts))
    return History([*events, *records])


LARGE = [b"10", b"100"]
COSTS = [("a", 1), ("b", 5), ("a", 10), ("a", 100)]


@pytest.mark.parametrize(
    ("totals", "alerts", "anomalies"),
    [
        (COSTS, LARGE, []),
        (COSTS, LARGE[:1], ["lost: output alerts: a ends at 10, not at its last state"]),
        (COSTS, [*LARGE, LARGE[1]], ["duplicated: output alerts: a shows 100 again"]),
        (COSTS[:-1], LARGE, ["lost: output totals: a ends at 10, not at its last state"]),
    ],
)
def test_each_output_is_compared_with_what_the_model_says_of_it(
    totals: list[Any], alerts: list[bytes], anomalies: list[str]
) -> None:
    """An output says `to` which topic it goes, and each topic is judged by itself."""
    history = alerting(PRICED, totals, alerts)

    found = [f"{each.name}: {each.text}" for each in CHECKS["relation"](history, "app")]

    assert found == anomalies


@pytest.mark.parametrize(
    ("totals", "alerts", "anomaly"),
    [
        (COSTS[:3], LARGE[:1], ""),
        (COSTS[:2], LARGE[:1], "behind-commit: output totals"),
        (COSTS[:3], [], "behind-commit: output alerts"),
        (COSTS[:3], LARGE, "ahead-of-commit: output alerts"),
    ],
)
def test_outputs_of_one_transaction_are_visible_together(
    totals: list[Any], alerts: list[bytes], anomaly: str
) -> None:
    """With the application down each output is that of the same committed input."""
    history = alerting(PRICED, totals, alerts)
    history.add(Committed(at_ms=0, application="app", offsets={"in-0": 3}, stable_ms=0, down=True))

    found = [f"{each.name}: {each.text}" for each in CHECKS["fold"](history, "app")]

    assert [each.startswith(anomaly) for each in found] == [True] * bool(anomaly)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            Map(doubled, outputs=("totals", "alerts")),
            "gives an output that does not say `to` which of totals, alerts it goes",
        ),
        (
            Map(lambda r: [Output(r.key, 1, to="alrts")], outputs=("totals", "alerts")),
            "gives an output to 'alrts', and its outputs are totals, alerts",
        ),
        (
            Map(lambda r: [Output(r.key, "x", to="alerts")], outputs=("totals", "alerts")),
            "gives 'x', and the output is declared as bytes",
        ),
    ],
)
def test_an_output_to_no_topic_is_refused(model: Model, said: str) -> None:
    """One sentence has the name, or what there is."""
    contract, known = contract_of(model, further=ALERTS)

    with pytest.raises(UsageProblem) as refused:
        list(Steps(Modelled(contract, known)).answers(INPUTS[0]))

    assert str(refused.value).startswith(f"The model orders.py:ORDERS {said}, at the record in-0@0")


def test_a_single_output_may_be_named() -> None:
    """A model of one output need not say which one, and may."""
    named = Map(lambda r: [Output(r.key, {"is": r.value["n"] * 2}, to="totals")])

    assert found("relation", story(named, INPUTS[:1], [("a", {"is": 2})])) == []
    with pytest.raises(
        UsageProblem, match="gives an output to 'costs', and its outputs are totals"
    ):
        found("relation", story(Map(lambda _: [Output("a", 1, to="costs")]), INPUTS[:1], []))


def test_a_history_without_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history is judged by the model of its run, and a person has to name the file."""
    monkeypatch.setattr(modelled, "_KNOWN", {})
    history = story(SUM, INPUTS, SUMS)
    application = history.application("app")
    assert application.contract
    assert application.contract.model
    file = tmp_path / "orders.py"
    file.write_text("from upheld.models import Map\nTOTALS = Map(lambda order: [])\n")
    unknown = application.contract.model.model_copy(
        update={"sha256": "0" * 64, "place": "orders.py:TOTALS"}
    )
    other = application.contract.model_copy(update={"model": unknown})
    history = History([BEGUN, application.model_copy(update={"contract": other})])

    with pytest.raises(UsageProblem, match=r"name the file with --model, such as orders-0{12}\.py"):
        demand_model(history)
    offer_all(file)
    with pytest.raises(UsageProblem, match=r"by another text of orders\.py:TOTALS than"):
        demand_model(history)
    with pytest.raises(UsageProblem, match="which this process has not loaded"):
        program(other)
