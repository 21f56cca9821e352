"""The answers of an application for a key, beside its last output of that key."""

from collections.abc import Iterable, Sequence
from typing import Final

from upheld.doctor.seen import Query
from upheld.history.events import Contract, Record
from upheld.programs.asked import Compared
from upheld.supervisor.deployed import OK, Part, address_of, asked

SHOWN_CHARS: Final = 80


def last_of(outputs: Sequence[Record]) -> Record | None:
    """Return the last output with a value and a key that is text, if there is one."""
    return next((each for each in reversed(outputs) if each.value and _text(each.key)), None)


def answer(contract: Contract, http: str, parts: Iterable[Part], last: Record) -> Query:
    """Ask an application once for the key of its last output.

    Args:
        contract: The contract of that output.
        http: The address of its query, with placeholders.
        parts: Its processes.
        last: The output that it has to answer with.
    """
    key = _text(last.key)
    address = address_of(http, parts, key)
    status, body = asked(address)
    said = body.decode(errors="backslashreplace")
    compared = Compared.of(contract)
    return Query(
        output=contract.writes,
        key=key,
        address=address,
        status=status,
        said=said[:SHOWN_CHARS],
        last=(last.value or b"").decode(errors="backslashreplace")[:SHOWN_CHARS],
        fits=status in OK and compared.of_answer(said) == compared.of_output(last.value),
    )


def _text(key: bytes | None) -> str:
    """Return a key as text; empty if it is none."""
    try:
        return (key or b"").decode()
    except UnicodeDecodeError:
        return ""
