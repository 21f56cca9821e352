"""The table of all crash points of a sweep, and a card for each failure."""

from collections import Counter

from rich.table import Table

from upheld.sweep.life import NO_FAULT
from upheld.sweep.points import CrashPoint, Result
from upheld.text import visible
from upheld.verdicts import Verdict

SHOWN_ANOMALIES = 3
NOTHING_RAN = 5  # an exit code of its own: no result is no success
EXIT_CODES: dict[Verdict | None, int] = {  # the first that occurs counts
    Verdict.VIOLATED: 1,
    Verdict.HARNESS_ERROR: 3,
    Verdict.INCONCLUSIVE: 2,
    None: 2,
    Verdict.UPHELD: 0,
}


def table(results: list[Result]) -> Table:
    """Return a table with a row for each kind of effect in a phase.

    It says how many crash points there are, how many were hit, and the verdicts on them.
    """
    there = [verdict for verdict in Verdict if any(result.verdict is verdict for result in results)]
    grid = Table("phase", "request, or file", "points", "hit", *map(str, there), pad_edge=False)
    for place in dict.fromkeys(_place(result.point) for result in results):
        counts = Counter(result.verdict for result in results if _place(result.point) == place)
        met = [str(counts[verdict] or "-") for verdict in there]
        grid.add_row(*place, str(counts.total()), str(counts.total() - counts[None]), *met)
    hit = sum(result.verdict is not None for result in results)
    grid.caption = f"{len(results)} points, {hit} hit, {len(results) - hit} missed"
    return grid


def _place(point: CrashPoint) -> tuple[str, str]:
    if point.then:
        return f"{point.phase}, then {point.then.phase}", point.then.api
    return point.phase, point.api


def card(result: Result, again: str, seed: int) -> str:
    """Return the text of a result that is not upheld, with the command to repeat it."""
    lines = [f"{(result.verdict or 'missed').upper()}  {result.point}"]
    lines += [f"  reason    {result.reason}"] if result.reason else []
    lines += [
        f"  anomaly   {anomaly.name}: {anomaly.text}"
        for anomaly in result.anomalies[:SHOWN_ANOMALIES]
    ]
    point = "" if result.point.phase == NO_FAULT else f" --point {result.point}"
    lines += [f"  history   {result.history}", f"  again     {again}{point} --seed {seed}"]
    return "\n".join(map(visible, lines))


def exit_code(results: list[Result]) -> int:
    """Return the exit code, as of a run: a missed crash point is inconclusive."""
    verdicts = {result.verdict for result in results}
    for verdict, code in EXIT_CODES.items():
        if verdict in verdicts:
            return code
    return NOTHING_RAN
