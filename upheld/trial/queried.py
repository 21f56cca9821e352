"""The keys for which the table of an application is asked."""

from collections.abc import Iterable
from contextlib import suppress

from upheld.programs import PROGRAMS
from upheld.trial.application import Application


def table_role(application: Application) -> str:
    """Return the role of the output that is its table; empty if it is not asked.

    It is asked on the rows of a program that has a table, also in place of that program.
    """
    if PROGRAMS[application.event.program].merged is None:
        return ""
    contract = application.event.contract
    return contract.table if contract else application.program.writes


def note_keys(application: Application, keys: Iterable[bytes | None]) -> None:
    """Let its table be asked for more keys, those of them that are text."""
    found = set[str]()
    for key in keys:
        with suppress(UnicodeDecodeError):
            found.add((key or b"").decode())
    application.keys += sorted(found - {"", *application.keys})
