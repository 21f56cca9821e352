"""The shape of an application, as its outputs show it.

Outputs of a map hang on single records of the input, and those of a fold on all of a key so far. A
fold may leave out states, so that two runs without a fault need not show the same ones.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from math import inf
from typing import Any, Final

from upheld.history.events import Record
from upheld.protocol.json_path import step
from upheld.reading import loaded

LEAST_CHARS: Final = 4  # of a text that is looked for in outputs
PAIRS: Final = 3  # of two outputs of a key, by which a number is known to grow
UNREADABLE: Final = object()  # the value of bytes that are no JSON
_WORD: Final = re.compile(rb"[A-Za-z0-9_.-]+")  # a name or an id, in JSON or in other bytes


def are_of_single_records(count: int, traced: int, growing: Iterable[str], due: int) -> bool:
    """Return whether each output seems to hang on one record of the input.

    That is so if each has the id of one, or if there is one for each record and no number grows.

    Args:
        count: The number of outputs.
        traced: How many records have their id in an output, and no other record's beside it.
        growing: The paths of numbers that grow with each output of a key.
        due: The number of records.
    """
    if traced == count == due:
        return True
    return not tuple(growing) and count in {traced, due}


def is_id(value: object) -> bool:
    """Return whether a value tells records apart wherever it is found.

    A number may be equal to another one by chance, and so may a short text.
    """
    return isinstance(value, str) and len(value) >= LEAST_CHARS


def traced(values: Iterable[bytes], ids: frozenset[str]) -> set[str]:
    """Return the ids that an output has with none of another record beside it."""
    found = (ids & {word.decode() for word in _WORD.findall(value)} for value in values)
    return {next(iter(each)) for each in found if len(each) == 1}


def increasing(outputs: Iterable[Record], ignored: Collection[str] = ()) -> tuple[str, ...]:
    """Return the paths of numbers that grow with each output of a key.

    There are none if too few outputs follow one of their key.

    Args:
        outputs: The outputs, in the order of their log.
        ignored: The paths that are not compared, such as that of a clock.
    """
    last: dict[bytes | None, dict[str, float]] = {}
    found: set[str] | None = None
    pairs = 0
    for record in outputs:
        numbers = dict(_numbers(read(record.value), "$")) if record.value is not None else {}
        if record.key in last:
            pairs += 1
            before = last[record.key]
            grown = {path for path, number in numbers.items() if number > before.get(path, inf)}
            found = grown if found is None else found & grown
        last[record.key] = numbers
    return tuple(sorted((found or set()).difference(ignored))) if pairs >= PAIRS else ()


def _numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    """Go through the numbers in the objects of a value, with their paths."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _numbers(inner, f"{path}{step(name)}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def read(data: bytes) -> Any:
    """Return what bytes are in JSON, or that they are none."""
    try:
        return loaded(data)
    except ValueError:
        return UNREADABLE
