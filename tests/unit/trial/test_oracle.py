"""An application is asked once for each input, and twice for the first one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from upheld.generators.ledger import Send
from upheld.history import History
from upheld.history.events import Answered, Application, Contract, ModelFile, Record
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Ready, Stopped
from upheld.trial.application import Application as Applied
from upheld.trial.oracle import Oracle
from upheld.trial.recorder import Recorder
from upheld.trial.rig import Given, Rig

CONTRACT = Contract(name="orders", reads="orders", writes="costs", format="json")


class Asked(Oracle):
    """An oracle whose application is a function of the input."""

    @property
    def runs(self) -> list[tuple[int, bool]]:
        """The runs of its attempt: how many records each had, and whether it was shifted."""
        runs: list[tuple[int, bool]] = cast(Any, self.recorder).runs
        return runs

    def _run(self, _: Any, inputs: Any, _name: str, *, shifted: bool = False) -> Given:
        self.runs.append((len(inputs), shifted))
        number = len(self.runs)
        value = f'{{"cost": 1, "run": {number}}}'.encode()
        outputs = tuple(
            Record(f"run-{number}-costs", 0, offset, 0, record.key, value)
            for offset, record in enumerate(inputs)
        )
        return Given(f"run-{number}-costs", outputs, (), is_ordered=True)


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
    recorder = SimpleNamespace(history=history, now_ms=0, runs=[])
    manifest = SimpleNamespace(name="orders", application=object(), emits=None)
    manifest.answering = manifest
    oracle = Asked(cast(Recorder, recorder), cast(Rig, rig), cast(Manifest, manifest))
    application = SimpleNamespace(
        name="orders",
        mode="exactly_once",
        event=event,
        reads="in",
        inputs={"in": 4},
        program=SimpleNamespace(
            name=contract.name if contract else "", reads="orders", writes="costs"
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


def test_a_shift_leaves_nothing_to_read_in_any_isolation(rig: SimpleNamespace) -> None:
    """An aborted record would be read by an application that reads uncommitted data."""
    written: list[Send] = []
    truncated: dict[str, int] = {}
    rig.feed = SimpleNamespace(write=lambda _topics, _role, sends: written.extend(sends))
    rig.reading = SimpleNamespace(truncate=truncated.update)
    oracle, _ = attempt(rig, 1)
    oracle._shift({"orders": "copy-orders"}, "orders", 2)
    assert [(send.partition, send.transaction) for send in written] == [(0, None), (1, None)]
    assert truncated == {"copy-orders-0": 1, "copy-orders-1": 1}


def test_topics_that_it_makes_for_itself_end_with_the_run(
    rig: SimpleNamespace, tmp_path: Path
) -> None:
    """They would be taken for leaked ones: no row has declared them."""
    deleted: list[str] = []
    ready = Ready(consumer_group="g", internal_topics=("app-once0-changelog",))
    rig.reading = SimpleNamespace(
        create=lambda _: None,
        records=lambda *_, **__: [],
        ends=lambda *_: (0, 0),
        delete=deleted.extend,
        groups=SimpleNamespace(committed=lambda *_, **__: {}),
    )
    rig.feed = SimpleNamespace(write=lambda *_: {})
    rig.take = lambda _: SimpleNamespace(start=lambda _: ready, stop=lambda _: Stopped())
    rig.pool = lambda _: SimpleNamespace(give_back=lambda _: None)
    rig.broker = SimpleNamespace(bootstrap="broker:1", client={})
    rig.session_timeout_ms = rig.progress_s = 1
    oracle, application = cast(tuple[Any, Any], attempt(rig, 1))
    application.partitions = 2
    application.directory = tmp_path / "row"
    application.program.topics = ("orders", "costs")
    oracle.recorder.wait = lambda _, is_done: is_done()
    oracle.manifest.topics = lambda identity, roles: {r: f"{identity}-{r}" for r in roles}
    oracle._run_there(application, [], "once", shifted=False)

    assert deleted == ["app-once0-orders", "app-once0-costs", "app-once0-changelog"]
