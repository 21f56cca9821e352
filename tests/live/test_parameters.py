"""Absurd parameters are refused at start, by both designs, before they touch anything."""

from pathlib import Path

import pytest

from streamgate.designs.instance import Instance
from streamgate.designs.manifest import load
from streamgate.designs.protocol import Failed, Start
from streamgate.designs.reaper import RunScope
from streamgate.programs import PROGRAMS

ABSURD = [
    ("batcher", {"threshold": 0}, "threshold is 0, and must be 1 or more"),
    ("holdings", {"delete_retention_ms": -1}, "delete_retention_ms is -1, and must be 0 or more"),
]


@pytest.mark.parametrize("design", ["plain", "spark"])
@pytest.mark.parametrize(("program", "parameters", "says"), ABSURD)
def test_is_refused(tmp_path: Path, design: str, program: str, parameters: dict[str, int], says: str) -> None:
    """One sentence, with the parameter, its value and the least that it may be; no broker has to be asked."""
    contract = PROGRAMS[program]
    with RunScope() as run:
        instance = Instance(load(design), run, tmp_path)
        instance.greet()
        reply = instance.start(
            Start(
                program=program,
                application_id="absurd",
                instance="a",
                mode="exactly_once",
                topics={role: f"absurd-{role}" for role in contract.topics},
                parameters=contract.parameters | parameters,
                bootstrap="127.0.0.1:1",
                client={},
                session_timeout_ms=6_000,
                transaction_timeout_ms=60_000,
                state_dir=str(tmp_path),
                durable_dir=str(tmp_path),
            )
        )
        instance.kill()

    assert isinstance(reply, Failed)
    assert (reply.kind, reply.message) == ("conflict", says)
