"""A report as the JSON of a badge, which shields.io draws.

Source: "Endpoint Badge" of shields.io, which says what its fields are.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from upheld.report.model import RowResult, Summary
from upheld.verdicts import Verdict

FAILS: Final = "red"
COLOURS: Final = {
    Verdict.VIOLATED: FAILS,
    Verdict.HARNESS_ERROR: "lightgrey",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.UPHELD: "brightgreen",
    Verdict.UNSUPPORTED: "lightgrey",
}


def badge(rows: Iterable[RowResult], summaries: Sequence[Summary]) -> dict[str, object]:
    """Return the badge: what became of how many rows, at which depth.

    The worst verdict gives the colour; a row that fails the run makes it red. A failure that is
    known, or as bad in the baseline, is no news and is not counted.
    """
    judged = [row for row in rows if (row.known is None and not row.excused) or row.fails]
    verdicts = Counter(row.verdict for row in judged)
    depths = dict.fromkeys(summary.depth for summary in summaries)
    found = [verdict for verdict in COLOURS if verdicts[verdict]]
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in found)
    worst = found[0] if found else Verdict.UNSUPPORTED
    return {
        "schemaVersion": 1,
        "label": "upheld",
        "message": f"{counts or 'nothing judged'} ({', '.join(depths)})",
        "color": FAILS if any(row.fails for row in judged) else COLOURS[worst],
    }
