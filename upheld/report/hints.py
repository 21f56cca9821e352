"""Hints at what a design may want to declare. No verdict hangs on one."""

from collections.abc import Iterable, Iterator
from typing import Final

from upheld.report.model import RowResult

MANY: Final = 50  # states of a row: fewer may all be shown by chance


def hints(rows: Iterable[RowResult]) -> Iterator[str]:
    """Go through designs that showed every state of a row and declare nothing.

    Such a design may have lost the states that other rows do not show.
    """
    many = [row for row in rows if row.states >= MANY]
    for design in sorted({row.design for row in many if row.states_shown >= row.states}):
        own = [row for row in many if row.design == design]
        whole = [row for row in own if row.states_shown >= row.states]
        said = f"{design} showed every state in {len(whole)} of {len(own)} rows"
        if some := [row for row in own if row not in whole]:
            least = min(some, key=lambda row: row.states_shown / row.states)
            said += f", and {least.states_shown} of {least.states} in {least.id}"
        yield (
            f'{said}. If it means to show each, add emits = "every-state" to its design.toml: '
            "then each is due."
        )
