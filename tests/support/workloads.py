"""Workloads of the features' size, and what two tests say of them."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import pytest

from upheld.generators.envelope_pb2 import Envelope, Hop
from upheld.generators.ledger import Send, ledger
from upheld.generators.tables import Tables


def digest(sends: Iterable[Send]) -> str:
    """Reduce a workload to what two processes can compare."""
    return hashlib.sha256(repr(list(sends)).encode()).hexdigest()


def counted(sends: Iterable[Send]) -> list[tuple[Send, Envelope]]:
    """Leave out what is aborted."""
    return [(send, Envelope.FromString(send.value)) for send in sends if not send.aborted]


def place(hop: Hop) -> tuple[str, int, bytes]:
    """Say which partition of which topic a hop is in."""
    return hop.topic, hop.partition, hop.topic_id


JOINS = pytest.mark.parametrize("program", ["clients", "tickers", "holdings"])


def joined(program: str, seed: int = 7, **more: int) -> Tables:
    """Return both tables of a workload of the features' size."""
    size = {"rows": 400, "partners": 400 if program == "clients" else 40} | more
    return Tables(seed, program, **size)


def everything(made: Tables) -> list[Send]:
    """Return all that can be asked of the tables, one after the other."""
    steps = [
        made.changes(500),
        made.partner_deletions(),
        made.partner_changes(),
        made.deletions(),
        made.insertions(),
    ]
    return sum([*steps, made.changes(100, aborted=False)], list[Send]())


def row_of(send: Send) -> dict[str, Any]:
    """Return the row that a record holds, or None for a null value."""
    row: dict[str, Any] = json.loads(send.value or b"null")
    return row


def last_rows(sends: Iterable[Send], role: str) -> dict[bytes | None, dict[str, Any]]:
    """Return the table that a reader of committed data has in the end."""
    rows = {send.key: send for send in sends if send.role == role and not send.aborted}
    return {key: row_of(send) for key, send in rows.items() if send.value}


def all_workloads() -> list[str]:
    """Return digests of a ledger, and of all of the tables of two programs."""
    tables = [everything(joined(program)) for program in ("holdings", "clients")]
    return [
        digest(sends) for sends in (ledger(7, entries=500, republished=True, moved=True), *tables)
    ]
