"""The outputs of an application by themselves, without a model."""

import re
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, Final, NamedTuple

from upheld.doctor.seen import Outputs
from upheld.generators.ledger import Send
from upheld.history.events import Record
from upheld.protocol.inputs import Input
from upheld.protocol.json_path import step
from upheld.reading import loaded

LEAST_CHARS: Final = 4  # of a text that is looked for in outputs
SHOWN_CHARS: Final = 80
PAIRS: Final = 3  # of two outputs of a key, by which a number is known to grow
_WORD: Final = re.compile(rb"[A-Za-z0-9_.-]+")  # a name or an id, in JSON or in other bytes
UNREADABLE: Final = object()  # the value of bytes that are no JSON


class Texts(NamedTuple):
    """The texts by which records of the input are told apart.

    Attributes:
        kept: Those that committed records have.
        aborted: Those that aborted records alone have.
    """

    kept: frozenset[str] = frozenset()
    aborted: frozenset[str] = frozenset()


def judged(outputs: Sequence[Record], texts: Texts, form: str) -> Outputs:
    """Return what is to be said of outputs.

    Args:
        outputs: All visible records of the output.
        texts: Those that tell records of the input apart.
        form: The format that is declared, such as json.
    """
    values = [record.value for record in outputs if record.value is not None]
    is_json = form == "json"
    read = [_read(value) for value in values]
    wrong = [value for value, found in zip(values, read, strict=True) if found is UNREADABLE]
    shown = wrong[0].decode(errors="replace")[:SHOWN_CHARS] if wrong and is_json else ""
    return Outputs(
        count=len(outputs),
        unreadable=len(wrong) if is_json else 0,
        first_unreadable=shown,
        aborted=sum(not texts.aborted.isdisjoint(_texts(found)) for found in read),
        traced=len(_traced(values, texts.kept)),
        increasing=increasing(outputs) if is_json and not wrong else (),
    )


def _traced(values: Iterable[bytes], kept: frozenset[str]) -> set[str]:
    """Return the texts of records that an output has, and no text of another one beside it."""
    found = (kept & {word.decode() for word in _WORD.findall(value)} for value in values)
    return {next(iter(each)) for each in found if len(each) == 1}


def increasing(outputs: Iterable[Record]) -> tuple[str, ...]:
    """Return the paths of numbers that grow with each output of a key.

    There are none if too few outputs follow one of their key.
    """
    last: dict[bytes | None, dict[str, float]] = {}
    found: set[str] | None = None
    pairs = 0
    for record in outputs:
        numbers = dict(_numbers(_read(record.value), "$")) if record.value is not None else {}
        if record.key in last:
            pairs += 1
            before = last[record.key]
            grown = {path for path, number in numbers.items() if number > before.get(path, inf)}
            found = grown if found is None else found & grown
        last[record.key] = numbers
    return tuple(sorted(found or ())) if pairs >= PAIRS else ()


def _numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    """Go through the numbers in the objects of a value, with their paths."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _numbers(inner, f"{path}{step(name)}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def told_apart(described: Input, sent: Iterable[Send]) -> Texts:
    """Return the texts of the unique field.

    They are none if no field is unique, or if it is a number: others may be equal by chance.
    """
    if described.unique is None:
        return Texts()
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for send in sent:
        value = described.unique.found(_read(send.value or b""))
        if isinstance(value, str) and len(value) >= LEAST_CHARS:
            found[send.aborted].add(value)
    return Texts(frozenset(found[False]), frozenset(found[True] - found[False]))


def _read(data: bytes) -> Any:
    try:
        return loaded(data)
    except ValueError:
        return UNREADABLE


def _texts(value: Any) -> Iterator[str]:
    """Go through the texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
