"""The schemas of records say what models read and generators write."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pytest
import records
from jsonschema import Draft202012Validator
from workloads import everything, joined

from upheld.generators.envelope_pb2 import Envelope
from upheld.generators.ledger import Send
from upheld.generators.pulse import names, signals
from upheld.generators.visits import visits
from upheld.history.events import Record, RecordLine
from upheld.programs import PROGRAMS
from upheld.programs.contract import Program, Unreadable
from upheld.spec.schemas import PROGRAMS as SHIPPED
from upheld.spec.schemas import text_of

ENVELOPES = ("input", "output", "entries")


@cache
def validator(program: str) -> Any:
    """Return the validator of a program's records."""
    return Draft202012Validator(json.loads(text_of(program)))


def accepted(program: str, role: str, value: object, key: str = "k") -> bool:
    """Return whether the schema of a program takes a record."""
    return bool(validator(program).is_valid({"role": role, "key": key, "value": value}))


def outputs(program: str) -> Iterator[tuple[Program, str, str, Any]]:
    """Go through the examples of a program's outputs: stage, role, key and value."""
    for stage in PROGRAMS[program].stages:
        for key, value in records.KINDS[program][stage.writes].examples:
            yield stage, stage.writes, key, value


def record_of(role: str, key: str, value: Any) -> Record:
    """Return a record as it would lie in the log."""
    if role in ENVELOPES:
        data: str | None = f"base64:{value}"
    else:
        data = None if value is None else json.dumps(value)
    fields = {"topic": f"it-{role}", "partition": 0, "offset": 7, "timestamp_ms": 0}
    line = {"kind": "record", **fields, "key": key, "value": data}
    return RecordLine.model_validate(line).record()


def test_every_program_has_a_schema_of_each_of_its_roles() -> None:
    """Inputs and outputs of the contract are described, and nothing else."""
    assert set(SHIPPED) == set(PROGRAMS) == set(records.KINDS)
    for name, program in PROGRAMS.items():
        assert set(records.KINDS[name]) == set(program.topics), name


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_examples_are_records_of_the_contract(program: str) -> None:
    """The schema takes them, and the model reads each output."""
    for role, kind in records.KINDS[program].items():
        assert kind.examples
        for key, value in kind.examples:
            assert accepted(program, role, value, key), (role, value)
            if role in ENVELOPES:
                assert Envelope.FromString(record_of(role, key, value).value or b"").id == "e1"
    for stage, role, key, value in outputs(program):
        stage.value_of(record_of(role, key, value))


def damaged(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Go through a value without a field, with another type in it, and with one more."""
    for name, field in value.items():
        yield {each: value[each] for each in value if each != name}
        yield value | {name: [field, 0.5]}
    yield value | {"more": 1}


@pytest.mark.parametrize("program", [name for name in PROGRAMS if name != "relay"])
def test_a_damaged_output_is_refused(program: str) -> None:
    """The schema refuses it, and the model too."""
    seen = 0
    for stage, role, key, value in outputs(program):
        for wrong in damaged(value) if value else ():
            seen += 1
            assert not accepted(program, role, wrong, key), wrong
            with pytest.raises(Unreadable):
                stage.value_of(record_of(role, key, wrong))
    assert seen >= 5


def sends(program: str) -> Iterable[Send]:
    """Return the records that the harness writes for a program."""
    match program:
        case "batcher":
            return visits(7)
        case "pulse":
            return [*signals(7, count=400), *names(7)]
        case _:
            return everything(joined(program))


@pytest.mark.parametrize("program", ["batcher", "pulse", "clients", "tickers", "holdings"])
def test_what_the_harness_writes_is_taken(program: str) -> None:
    """Rows, signals, visits and tombstones of a workload obey the schema."""
    roles = set()
    for send in sends(program):
        role = send.role or PROGRAMS[program].reads
        roles.add(role)
        value = None if send.value is None else json.loads(send.value)
        assert accepted(program, role, value, (send.key or b"").decode()), send

    assert roles == set(PROGRAMS[program].inputs)
