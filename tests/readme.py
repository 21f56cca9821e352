"""Keeps the README's table and red card true: compares them with real reports, or writes them from these.

python tests/readme.py REPORT.jsonl…          the cells of each design that these reports, taken together, judge whole are true
python tests/readme.py --write REPORT.jsonl…  put them in; a report of a wrong design gives the red card
"""

import re
import sys
from collections import Counter
from pathlib import Path

from streamgate import catalogue, report
from streamgate.designs import manifest
from streamgate.verdicts import Verdict

README = Path(__file__).resolve().parent.parent / "README.md"
DESIGNS = ("spark", "plain")
TABLE, CARD = ("<!-- table -->\n", "<!-- /table -->"), ("<!-- card -->\n", "<!-- /card -->")
LACKING = "this machine has no"  # so begins the reason of a row that cannot be judged here
RUN_NAMES = re.compile(r"sg-[0-9a-f]{6}-[0-9a-f]{8}-")  # the application id is new in every run


def cells(rows: list[report.RowResult]) -> dict[tuple[str, str], str]:
    """(guarantee, design) -> what its rows came to, the worst first."""
    found: dict[tuple[str, str], Counter[Verdict]] = {}
    for row in rows:
        found.setdefault((row.guarantee, row.design), Counter())[row.verdict] += 1
    order = list(Verdict)
    return {
        place: ", ".join(f"{verdict} {counts[verdict]}/{counts.total()}" for verdict in sorted(counts, key=order.index))
        for place, counts in found.items()
    }


def table(judged: dict[tuple[str, str], str]) -> str:
    """The table in Markdown: guarantees down, designs across."""
    lines = ["| | promise | " + " | ".join(f"`{d}`" for d in DESIGNS) + " |", "|---|---|" + "---|" * len(DESIGNS)]
    for guarantee in catalogue.load().guarantees.values():
        if any((guarantee.id, design) in judged for design in DESIGNS):
            row = " | ".join(judged.get((guarantee.id, design), "-") for design in DESIGNS)
            lines.append(f"| {guarantee.id} | {guarantee.promise} | {row} |")
    return "\n".join(lines) + "\n"


def between(text: str, marks: tuple[str, str]) -> str:
    """What stands between two marks."""
    return text.partition(marks[0])[2].partition(marks[1])[0]


def cells_in(markdown: str) -> dict[tuple[str, str], str]:
    """(guarantee, design) -> the README's cell."""
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in markdown.splitlines()[2:]]
    return {(row[0], design): cell for row in rows for design, cell in zip(DESIGNS, row[2:], strict=True)}


def card_of(row: report.RowResult) -> str:
    """A row's red card, without what is new in every run."""
    card = report.card(row, f"streamgate run --design {row.design} --only '@{row.id.partition('[')[0]}'")
    return RUN_NAMES.sub("", card)


def main(arguments: list[str]) -> int:
    """Compare or write."""
    write, paths = arguments[:1] == ["--write"], [Path(a) for a in arguments if a != "--write"]
    text, there = README.read_text(encoding="utf-8"), [path for path in paths if path.exists()]
    rows = [row for path in there for row in report.read(path)[0]]
    cards = [card_of(row) for row in rows if row.design not in DESIGNS and row.anomalies]
    known, judged = catalogue.load(), dict[tuple[str, str], str]()
    for design in DESIGNS:
        mine = [row for row in rows if row.design == design and row.repetition == 0]
        if {row.id for row in mine} == {row.id for row in known.promised(manifest.load(design))}:
            judged |= cells(mine)
        elif mine:
            print(f"{design} is not judged whole, which proves nothing about its cells")
    lacking = {(row.guarantee, row.design): row.reason for row in rows if row.reason.startswith(LACKING)}
    if write:
        for marks, new in (
            (TABLE, table(judged) if judged else None),
            (CARD, f"```\n{cards[0]}\n```\n" if cards else None),
        ):
            if new:
                text = text.replace(between(text, marks).join(marks), new.join(marks))
        README.write_text(text, encoding="utf-8")
        return 0
    said = cells_in(between(text, TABLE))
    for place in judged.keys() & lacking.keys():
        print(f"{place} is not compared: {lacking[place]}")
        del judged[place]
    wrong = [
        f"{place}: the README says {said.get(place)}, the run {cell}"
        for place, cell in judged.items()
        if said.get(place) != cell
    ]
    print("\n".join(wrong) or f"the README's table is true for {len(judged)} cells")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
