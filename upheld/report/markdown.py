"""A report as Markdown, for the summary of a job in a CI system."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from upheld.report.card import card
from upheld.report.matrix import Matrix
from upheld.report.model import RowResult
from upheld.text import visible
from upheld.verdicts import Verdict

NOT_JUDGED = "-"
CARDS = 20  # the others are counted: a CI system cuts a long summary
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")


def markdown(found: Matrix, hints: Iterable[str] = ()) -> str:
    """Return a matrix of reports as Markdown, with the card of each row that fails.

    All text of designs is escaped: none of it is read as Markdown or as HTML.
    """
    lines = [f"# Upheld: {_counts(found)}", ""]
    lines += [f"{_ran(found)}", ""]
    lines += _table(found)
    lines += [line for hint in hints for line in ("", f"- {_text(hint)}")]
    wrong = [
        row
        for row in found.rows
        if row.fails or (row.verdict is Verdict.HARNESS_ERROR and not row.excused)
    ]
    for row in wrong[:CARDS]:
        lines += ["", *_card(row)]
    if len(wrong) > CARDS:
        lines += ["", f"{len(wrong) - CARDS} more rows failed; `report.jsonl` has them."]
    return "\n".join(lines) + "\n"


def _counts(found: Matrix) -> str:
    counts = Counter(row.verdict for row in found.rows)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def _ran(found: Matrix) -> str:
    """Return a sentence for each run: what it judged, on what, and with which seed."""
    return "  \n".join(
        f"{sum(each.judged.values())} of {sum(each.promised.values())} promised rows "
        f"({each.depth}) on {_text(each.broker)}, seed {each.seed}"
        + (f", ended {each.ended}" if each.ended else "")
        + ("; partial" if each.partial else "")
        for each in found.summaries
    )


def _table(found: Matrix) -> Iterator[str]:
    heads = [_text(str(column)) for column in found.columns]
    yield f"| guarantee | promise | {' | '.join(heads)} |"
    yield f"|---|---|{'---|' * len(heads)}"
    for line in found.lines:
        cells = [str(cell) if cell else NOT_JUDGED for cell in line.cells]
        name = f"**{_text(line.guarantee)}**" if line.differs else _text(line.guarantee)
        yield f"| {name} | {_text(line.promise)} | {' | '.join(cells)} |"


def _card(row: RowResult) -> Iterator[str]:
    text = card(row, row.again)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    yield f"<details><summary>{_html(row.verdict)}: {_html(row.id)}, {_html(row.design)}</summary>"
    yield from ["", f"{fence}text", text, fence, "", "</details>"]


def _text(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", visible(text))


def _html(text: str) -> str:
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
