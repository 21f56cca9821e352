"""The outputs of an application by themselves, without a model."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from upheld.doctor.seen import Outputs
from upheld.generators.ledger import Send
from upheld.history.events import Record
from upheld.programs.shown import UNREADABLE, increasing, is_id, read, traced
from upheld.protocol.inputs import Input

SHOWN_CHARS: Final = 80


class Texts(NamedTuple):
    """The texts by which records of the input are told apart.

    Attributes:
        kept: Those that committed records have.
        aborted: Those that aborted records alone have.
    """

    kept: frozenset[str] = frozenset()
    aborted: frozenset[str] = frozenset()


def judged(
    outputs: Sequence[Record], texts: Texts, form: str, ignored: Collection[str] = ()
) -> Outputs:
    """Return what is to be said of outputs.

    Args:
        outputs: All visible records of the output.
        texts: Those that tell records of the input apart.
        form: The format that is declared, such as json.
        ignored: The paths that are not compared.
    """
    values = [record.value for record in outputs if record.value is not None]
    is_json = form == "json"
    decoded = [read(value) for value in values]
    wrong = [value for value, found in zip(values, decoded, strict=True) if found is UNREADABLE]
    shown = wrong[0].decode(errors="replace")[:SHOWN_CHARS] if wrong and is_json else ""
    return Outputs(
        count=len(outputs),
        unreadable=len(wrong) if is_json else 0,
        first_unreadable=shown,
        aborted=sum(not texts.aborted.isdisjoint(_texts(found)) for found in decoded),
        traced=len(traced(values, texts.kept)),
        increasing=increasing(outputs, ignored) if is_json and not wrong else (),
    )


def told_apart(described: Input, sent: Iterable[Send]) -> Texts:
    """Return the texts of the unique field.

    They are none if no field is unique, or if it is a number: others may be equal by chance.
    """
    if described.unique is None:
        return Texts()
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for send in sent:
        value = described.unique.found(read(send.value or b""))
        if is_id(value):
            found[send.aborted].add(value)
    return Texts(frozenset(found[False]), frozenset(found[True] - found[False]))


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
