"""The table of all crash points of a sweep, and a card for each failure."""

from collections import Counter

from rich.table import Table

from upheld.report import COLOURS
from upheld.sweep.life import NO_FAULT
from upheld.sweep.points import CrashPoint, Result
from upheld.text import visible
from upheld.ui.progress import Progress
from upheld.verdicts import Verdict

SHOWN_ANOMALIES = 3
SHOWN_MISSED = 10  # crash points that were not hit, by name
NOTHING_RAN = 5  # an exit code of its own: no result is no success
EXIT_CODES: dict[Verdict | None, int] = {  # the first that occurs counts
    Verdict.VIOLATED: 1,
    Verdict.HARNESS_ERROR: 3,
    Verdict.INCONCLUSIVE: 2,
    None: 2,
    Verdict.UPHELD: 0,
}


def show(result: Result, progress: Progress, lane: int = 1) -> None:
    """Show that a crash point is done; at once, too, why it is not upheld.

    The whole cards come at the end, when it is known how many there are.
    """
    progress.finished(
        f"{result.point} {result.seconds:.1f} s",
        result.verdict or "missed",
        style=COLOURS[result.verdict] if result.verdict else "yellow",
        lane=lane,
        is_quiet=result.verdict is Verdict.UPHELD,
    )
    for line in _why(result)[:1]:
        progress.message(visible(line))


def _why(result: Result) -> list[str]:
    """Return why a result is not upheld, a line a reason or an anomaly."""
    lines = [f"  reason    {result.reason}"] if result.reason else []
    lines += [
        f"  anomaly   {anomaly.name}: {anomaly.text}"
        for anomaly in result.anomalies[:SHOWN_ANOMALIES]
    ]
    return lines


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
    return grid


def ending(results: list[Result]) -> str:
    """Return the last line of a sweep, which counts the crash points hit and upheld."""
    points = [result for result in results if result.point.phase != NO_FAULT]
    if not points:
        return "no crash points: what is not upheld without a fault is not killed"
    missed = [str(result.point) for result in points if result.verdict is None]
    upheld = sum(result.verdict is Verdict.UPHELD for result in points)
    said = f"crash points {len(points) - len(missed)} of {len(points)} hit, {upheld} upheld"
    if not missed:
        return said
    more = f" and {len(missed) - SHOWN_MISSED} more" if len(missed) > SHOWN_MISSED else ""
    return f"{said}; not hit: {', '.join(missed[:SHOWN_MISSED])}{more}"


def _place(point: CrashPoint) -> tuple[str, str]:
    if point.then:
        return f"{point.phase}, then {point.then.phase}", point.then.api
    return point.phase, point.api


def card(result: Result, again: str, seed: int) -> str:
    """Return the text of a result that is not upheld, with the command to repeat it."""
    lines = [f"{(result.verdict or 'missed').upper()}  {result.point}", *_why(result)]
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
