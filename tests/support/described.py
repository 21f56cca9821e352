"""Descriptions of inputs for tests, and samples for them to name."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from upheld.generators.inputs import made
from upheld.generators.ledger import Send
from upheld.protocol.inputs import Input, described

ORDERS = tuple(
    {"id": f"o-{number}", "account": f"acc-{number % 7:02}", "cents": number * 5}
    for number in range(20)
)


def written(folder: Path, values: Iterable[Any]) -> Path:
    """Write samples as JSON lines."""
    file = folder / "orders.jsonl"
    file.write_text("".join(f"{json.dumps(value)}\n" for value in values), encoding="utf-8")
    return file


def an_input(folder: Path, **fields: Any) -> Input:
    """Describe an input; its samples are orders, unless there are others already."""
    if not (folder / "orders.jsonl").exists():
        written(folder, ORDERS)
    table = {"topic": "orders", "sample": "orders.jsonl"} | fields
    return described(table, where="design.toml, [input.orders]", folder=folder)


def sends(folder: Path, seed: int = 1, **fields: Any) -> tuple[Send, ...]:
    """Make the records of a description."""
    return made(an_input(folder, **fields), seed)


def values(made: Iterable[Send]) -> list[Any]:
    """Return the values of records in JSON."""
    return [None if send.value is None else json.loads(send.value) for send in made]
