"""Hints at what a run does not show, or a design may want to declare.

No verdict hangs on one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from upheld.protocol.waivers import SOON_DAYS
from upheld.report.model import RowResult
from upheld.report.reasons import few
from upheld.spec.kills import Kills
from upheld.verdicts import Verdict

MANY: Final = 50  # states of a row: fewer may all be shown by chance


def hints(rows: Iterable[RowResult], known: Kills) -> Iterator[str]:
    """Go through what somebody who reads the verdicts has to know beside them.

    Args:
        rows: The rows of a run.
        known: The rows that catch each wrong design.
    """
    found = list(rows)
    yield from _powerless(found, known)
    yield from _of_little_worth(found)
    yield from _may_declare(found)
    yield from _waived(found)


def _powerless(rows: Iterable[RowResult], known: Kills) -> Iterator[str]:
    """Look for designs of which no upheld row catches any wrong design of ours."""
    upheld = defaultdict[str, set[str]](set)
    for row in rows:
        if row.verdict is Verdict.UPHELD:
            upheld[row.design].add(row.id)
    for design, ids in upheld.items():
        if not any(ids & judged.killed.keys() for judged in known.designs.values()):
            yield (
                f"no row that {design} upheld is known to catch one of {len(known.designs)} wrong "
                "designs, so that it upheld them says little"
            )


def _of_little_worth(rows: Iterable[RowResult]) -> Iterator[str]:
    """Go through the warnings of rows, each with the rows that have it."""
    named = defaultdict[str, list[str]](list)
    for row in rows:
        for warning in row.warnings:
            named[warning].append(f"{row.design} {row.id}")
    for warning, found in named.items():
        yield f"{few(found)}: {warning}"


def _may_declare(rows: Iterable[RowResult]) -> Iterator[str]:
    """Look for designs that showed every state of a row and declare nothing.

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


def _waived(rows: Iterable[RowResult]) -> Iterator[str]:
    """Go through the waivers that end soon, and those that count no more."""
    said = dict[str, None]()
    for row in rows:
        named = f"{row.design} {row.id}"
        if row.known_days is not None and row.known_days <= SOON_DAYS:
            days = f"{row.known_days} more day{'s' * (row.known_days != 1)}"
            said[f"{named} is a known failure for {days}: {row.known}"] = None
        if row.lapsed and row.known is None:
            so = "the row is upheld, so that its line can go"
            if row.verdict is not Verdict.UPHELD:
                so = "it counts as any other row"
            said[f"{named} was {row.lapsed}; {so}"] = None
    yield from said
