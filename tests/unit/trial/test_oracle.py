"""An application is asked once for each input, and twice for the first one."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from upheld.history import History
from upheld.history.events import (
    Answered,
    Application,
    Committed,
    Contract,
    FurtherOutput,
    ModelFile,
    Record,
)
from upheld.protocol.manifest import Manifest
from upheld.trial.application import Application as Applied
from upheld.trial.oracle import Fresh, Oracle
from upheld.trial.recorder import Recorder
from upheld.trial.rig import Given, Rig

CONTRACT = Contract(name="orders", reads="orders", writes="costs", format="json")
TWO = CONTRACT.model_copy(update={"further": (FurtherOutput(writes="alerts", format="json"),)})


class Asked(Oracle):
    """An oracle whose application is a function of the input."""

    @property
    def runs(self) -> list[tuple[int, bool]]:
        """The runs of its attempt: how many records each had, and whether it was shifted."""
        runs: list[tuple[int, bool]] = cast(Any, self.recorder).runs
        return runs

    @property
    def dues(self) -> list[int]:
        """The number of outputs that were due in each of them, as far as it was known."""
        dues: list[int] = cast(Any, self.recorder).dues
        return dues

    def _run(self, application: Any, inputs: Any, fresh: Fresh) -> tuple[Given, ...]:
        self.runs.append((len(inputs), fresh.shifted))
        self.dues.append(fresh.due)
        number = len(self.runs)
        value = f'{{"cost": 1, "run": {number}}}'.encode()
        further = application.program.further
        given = []
        for role in ("costs", *further):
            outputs = tuple(
                Record(f"run-{number}-{role}", 0, offset, 0, record.key, value)
                for offset, record in enumerate(inputs[: 1 if role in further else None])
            )
            output = role if further else ""
            given.append(Given(f"run-{number}-{role}", outputs, (), is_ordered=True, output=output))
        return tuple(given)


@pytest.fixture
def rig() -> SimpleNamespace:
    """Return a rig that remembers answers."""
    return SimpleNamespace(answers={})


def attempt(rig: Any, records: int, contract: Contract | None = CONTRACT) -> tuple[Asked, Any]:
    """Return an oracle and an application of a new attempt with so many input records."""
    history = History([])
    event = Application(
        name="orders",
        application_id="app",
        program="relay",
        mode="exactly_once",
        topics={"orders": "in", "costs": "out"},
        parameters={},
        transaction_timeout_ms=0,
        contract=contract,
    )
    history.add(event)
    history.add_all(Record("in", 0, offset, 0, b"k", b"%d" % offset) for offset in range(records))
    recorder = SimpleNamespace(history=history, now_ms=0, runs=[], dues=[])
    manifest = SimpleNamespace(name="orders", application=object(), emits=None)
    manifest.answering = manifest
    oracle = Asked(cast(Recorder, recorder), cast(Rig, rig), cast(Manifest, manifest))
    application = SimpleNamespace(
        name="orders",
        mode="exactly_once",
        event=event,
        commits={"in": 4},
        inputs={"in": 4},
        program=SimpleNamespace(
            name=contract.name if contract else "",
            reads="orders",
            inputs=("orders",),
            writes="costs",
            further=contract.roles[1:] if contract else (),
            results=contract.roles if contract else ("costs",),
        ),
    )
    return oracle, application


def answers(oracle: Oracle) -> Iterator[Answered]:
    """Go through the answers in the history."""
    return oracle.recorder.history.of(Answered)


def test_the_first_input_is_asked_twice(rig: SimpleNamespace) -> None:
    """The second run lies elsewhere in the log, and shows what is unstable."""
    oracle, application = attempt(rig, 3)
    oracle.ask(cast(Applied, application))
    (answer,) = answers(oracle)

    assert oracle.runs == [(3, False), (3, True)]
    assert answer.unstable == ("$.run",)
    assert answer.topics == ("run-1-costs", "run-1-orders")


def test_an_input_is_asked_once_in_a_run(rig: SimpleNamespace) -> None:
    """A later attempt has the answer from the first, and another input is asked once."""
    oracle, application = attempt(rig, 3)
    oracle.ask(cast(Applied, application))
    again, application = attempt(rig, 3)
    again.ask(cast(Applied, application))
    more, application = attempt(rig, 4)
    more.ask(cast(Applied, application))

    assert again.runs == []
    assert [each.outputs for each in answers(again)] == ["run-1-costs"]
    assert sum(record.topic == "run-1-costs" for record in again.recorder.history.of(Record)) == 3
    assert more.runs == [(4, False)]
    assert [each.unstable for each in answers(more)] == [("$.run",)]


def test_the_release_before_is_asked(rig: SimpleNamespace) -> None:
    """Its runs are those of its own manifest, and its answers are known by its name."""
    oracle, application = attempt(rig, 3)
    earlier = SimpleNamespace(name="orders of yesterday", application=object(), emits=None)
    named = cast(Any, oracle.manifest)
    named.answering = earlier
    oracle.ask(cast(Applied, application))

    assert [question.design for question in rig.answers] == ["orders of yesterday"]


def test_it_is_known_how_many_outputs_are_due(rig: SimpleNamespace) -> None:
    """The second run has as many as the first; then each input has one, if it had."""
    cost = CONTRACT.model_copy(update={"shape": "map"})
    oracle, application = attempt(rig, 3, cost)
    oracle.ask(cast(Applied, application))
    more, application = attempt(rig, 4, cost)
    more.ask(cast(Applied, application))
    total = CONTRACT.model_copy(update={"name": "totals", "shape": "fold"})
    folds, application = attempt(rig, 3, total)
    folds.ask(cast(Applied, application))

    assert (oracle.dues, more.dues) == ([0, 3], [4])
    assert folds.dues == [0, 0]


def test_each_program_of_a_design_is_asked(rig: SimpleNamespace) -> None:
    """The answer of one program is none of another one on the same input."""
    oracle, application = attempt(rig, 3)
    oracle.ask(cast(Applied, application))
    other, application = attempt(rig, 3, CONTRACT.model_copy(update={"name": "others"}))
    other.ask(cast(Applied, application))

    assert other.runs == [(3, False), (3, True)]


@pytest.mark.parametrize(
    ("program", "emits", "is_by_last_value"),
    [("ledger", None, True), ("ledger", "every-state", False), ("relay", None, False)],
)
def test_a_program_whose_outputs_skip_states_is_compared_by_its_last_values(
    rig: SimpleNamespace, program: str, emits: str | None, is_by_last_value: bool
) -> None:
    """Another run may show other states, even if this one shows all of them."""
    oracle, application = attempt(rig, 3, CONTRACT.model_copy(update={"name": program}))
    named = SimpleNamespace(name="plain", application=None, emits=emits)
    named.answering = named
    oracle = replace(oracle, manifest=cast(Manifest, named))
    oracle.ask(cast(Applied, application))
    (answer,) = answers(oracle)

    assert answer.is_by_last_value == is_by_last_value


@pytest.mark.parametrize(("emits", "is_by_last_value"), [(None, True), ("every-state", False)])
def test_a_fold_with_another_number_of_outputs_may_skip_states(
    rig: SimpleNamespace, emits: str | None, is_by_last_value: bool
) -> None:
    """Unless it declares that it emits every state."""
    fold = FurtherOutput(writes="alerts", format="json")
    contract = CONTRACT.model_copy(update={"shape": "fold", "further": (fold,)})
    oracle, application = attempt(rig, 3, contract)
    cast(Any, oracle.manifest).emits = emits
    oracle.ask(cast(Applied, application))

    assert [each.is_by_last_value for each in answers(oracle)] == [False, is_by_last_value]


def test_each_output_has_an_answer_of_its_own(rig: SimpleNamespace) -> None:
    """One run answers for all of them, and each has unstable fields of its own."""
    oracle, application = attempt(rig, 3, TWO)
    oracle.ask(cast(Applied, application))

    assert oracle.runs == [(3, False), (3, True)]
    assert [(each.output, each.outputs, each.unstable) for each in answers(oracle)] == [
        ("costs", "run-1-costs", ("$.run",)),
        ("alerts", "run-1-alerts", ("$.run",)),
    ]
    assert [each.topics for each in answers(oracle)] == [
        ("run-1-costs", "run-1-orders"),
        ("run-1-alerts", "run-1-orders"),
    ]


@pytest.mark.parametrize(("contract", "runs"), [(CONTRACT, []), (TWO, [(2, False)])])
def test_the_committed_input_is_asked_if_an_output_does_not_show_its_input(
    rig: SimpleNamespace, contract: Contract, runs: list[tuple[int, bool]]
) -> None:
    """The first output has one record for each input, and the second one has fewer."""
    oracle, application = attempt(rig, 3, contract)
    oracle.ask(cast(Applied, application))
    oracle.runs.clear()
    oracle.recorder.history.add(
        Committed(at_ms=0, application="orders", offsets={"in-0": 2}, stable_ms=0, down=True)
    )
    oracle.ask_below_the_commit(cast(Applied, application))

    assert oracle.runs == runs


@pytest.mark.parametrize(("shape", "runs"), [("map", [(2, False)]), ("fold", [])])
def test_the_committed_input_is_asked_at_least_once_if_outputs_have_an_order(
    rig: SimpleNamespace, shape: str, runs: list[tuple[int, bool]]
) -> None:
    """A key shows as many outputs at least; nobody knows which last values are later."""
    oracle, application = attempt(rig, 3, TWO.model_copy(update={"shape": shape}))
    application.mode = "at_least_once"
    oracle.ask(cast(Applied, application))
    oracle.runs.clear()
    oracle.recorder.history.add(
        Committed(at_ms=0, application="orders", offsets={"in-0": 2}, stable_ms=0, down=True)
    )
    oracle.ask_below_the_commit(cast(Applied, application))

    assert oracle.runs == runs


MODELLED = CONTRACT.model_copy(
    update={"model": ModelFile(place="orders.py:ORDERS", sha256="0", reads="json")}
)


@pytest.mark.parametrize(("records", "contract"), [(0, CONTRACT), (3, None), (3, MODELLED)])
def test_nothing_is_asked(rig: SimpleNamespace, records: int, contract: Contract | None) -> None:
    """A program has a model, and nothing comes of an empty input."""
    oracle, application = attempt(rig, records, contract)
    oracle.ask(cast(Applied, application))

    assert oracle.runs == []
    assert list(answers(oracle)) == []


@pytest.mark.parametrize(
    ("shape", "value", "is_by_last_value"),
    [
        ("fold", '{{"count": {0}}}', True),
        ("map", '{{"count": {0}}}', True),  # declared as what it is not
        ("map", '{{"count": {0}, "of": "order-{0}"}}', True),  # the last order beside a count
        ("map", '{{"of": "order-{0}"}}', False),  # some records have no output
        ("map", '{{"cents": 7}}', False),
    ],
)
def test_what_looks_like_a_fold_is_compared_as_one(
    rig: SimpleNamespace, shape: str, value: str, *, is_by_last_value: bool
) -> None:
    """Two runs of a fold may show as many states by chance, and others after a fault."""
    contract = CONTRACT.model_copy(update={"shape": shape, "unique": {"orders": "$.id"}})
    oracle, application = attempt(rig, 0, contract)
    inputs = [
        Record("in", 0, offset, 0, b"k", b'{"id": "order-%d"}' % offset) for offset in range(12)
    ]
    shown = tuple(
        Record("run", 0, place, 0, b"k", value.format(offset).encode())
        for place, offset in enumerate(range(1, 12, 2))
    )
    given = Given("run", shown, (), is_ordered=True)

    assert oracle._skips_states(contract, application, inputs, given) == is_by_last_value
