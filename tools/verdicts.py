"""Keep docs/verdicts.md and the README true: compare or write what a run says.

    python tools/verdicts.py REPORT.jsonl…          compare: no row contradicts a cell
    python tools/verdicts.py --write REPORT.jsonl…  write the cells, the families and the red card

`--write` puts in the cells of each design that the reports together judge whole. The README has
the sum of each family, and a red card where a report is of a wrong design.

The table comes from runs of all rows. A report of fewer rows cannot say that a cell is true. It can
say that none of its rows contradicts the cell, and it names the cells that it holds no row of.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pages import Part

from upheld import report
from upheld.protocol import manifest
from upheld.spec import catalogue
from upheld.spec.selection import promised
from upheld.verdicts import Reason, Verdict

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
VERDICTS = ROOT / "docs" / "verdicts.md"
DESIGNS = ("spark", "plain")
TABLE = Part("<!-- table -->\n", "<!-- /table -->")
FAMILIES = Part("<!-- families -->\n", "<!-- /families -->")
CARD = Part("<!-- card -->\n", "<!-- /card -->")
RUN_NAMES = re.compile(r"trial-[0-9a-f]{6}-[0-9a-f]{8}-")  # the application id is new in every run


class Place(NamedTuple):
    """A cell of the table."""

    guarantee: str
    design: str

    def __str__(self) -> str:
        """Return the text for a message: `G22 of plain`."""
        return f"{self.guarantee} of {self.design}"


class Comparison(NamedTuple):
    """How the table and the rows of a report agree."""

    wrong: list[str]  # sentences
    whole: list[Place]  # every promised row of the cell was judged, and the cell is true
    partly: list[Place]  # some were, and none contradicts the cell
    unseen: list[Place]  # none was

    def text(self) -> str:
        """Say it in lines for a person."""
        if self.wrong:
            return "\n".join(self.wrong)
        lines = [f"docs/verdicts.md is true for {len(self.whole)} cells"]
        if self.partly:
            lines.append(
                f"of {len(self.partly)} cells some rows were judged, and none contradicts the table"
            )
        if self.unseen:
            lines.append(
                f"not compared, because no row was judged: {', '.join(map(str, self.unseen))}"
            )
        return "\n".join(lines)


def counted(rows: Iterable[report.RowResult]) -> dict[Place, Counter[Verdict]]:
    """Count the verdicts of each cell."""
    found: dict[Place, Counter[Verdict]] = {}
    for row in rows:
        found.setdefault(Place(row.guarantee, row.design), Counter())[row.verdict] += 1
    return found


def cell(counts: Counter[Verdict]) -> str:
    """Write the cell for these verdicts, the worst first."""
    order = list(Verdict)
    total = counts.total()
    return ", ".join(f"{each} {counts[each]}/{total}" for each in sorted(counts, key=order.index))


def counts_in(cell: str) -> Counter[Verdict]:
    """Read the verdicts back from a cell."""
    return Counter(
        {Verdict(name): int(number) for name, number in re.findall(r"([\w-]+) (\d+)/\d+", cell)}
    )


def table(judged: dict[Place, Counter[Verdict]]) -> str:
    """Write the table in Markdown: guarantees down, designs across."""
    lines = [
        "| | promise | " + " | ".join(f"`{d}`" for d in DESIGNS) + " |",
        "|---|---|" + "---|" * len(DESIGNS),
    ]
    for guarantee in catalogue.load().guarantees.values():
        places = [Place(guarantee.id, design) for design in DESIGNS]
        if any(place in judged for place in places):
            row = " | ".join(cell(judged[place]) if place in judged else "-" for place in places)
            lines.append(f"| {guarantee.id} | {guarantee.promise} | {row} |")
    return "\n".join(lines) + "\n"


def families(cells: dict[Place, str]) -> str:
    """Write the table of families in Markdown, with the sums of their cells."""
    known = catalogue.load()
    lines = [
        "| family | what it is about | guarantees | "
        + " | ".join(f"`{d}`" for d in DESIGNS)
        + " |",
        "|---|---|---|" + "---|" * len(DESIGNS),
    ]
    for family in dict.fromkeys(each.family for each in known.guarantees.values()):
        ids = [each.id for each in known.guarantees.values() if each.family == family]
        sums = [
            sum((counts_in(cells.get(Place(name, design), "")) for name in ids), Counter())
            for design in DESIGNS
        ]
        name = family.replace("_", " ")
        row = " | ".join(cell(counts) for counts in sums)
        lines.append(f"| {name} | {known.tags[family]} | {len(ids)} | {row} |")
    return "\n".join(lines) + "\n"


def cells_in(markdown: str) -> dict[Place, str]:
    """Read the cells of the table."""
    rows = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in markdown.splitlines()[2:]
    ]
    return {
        Place(row[0], design): cell
        for row in rows
        for design, cell in zip(DESIGNS, row[2:], strict=True)
    }


def compared(
    said: dict[Place, str], promised: dict[Place, set[str]], rows: Iterable[report.RowResult]
) -> Comparison:
    """Compare the table with the rows of a report.

    Args:
        said: The cells of the table.
        promised: The row ids of each cell.
        rows: The rows that were judged.
    """
    order = list(Verdict)
    by_severity = sorted(rows, key=lambda row: order.index(row.verdict), reverse=True)
    judged = {(row.design, row.id): row for row in by_severity}  # the worst verdict of each
    counts = counted(judged.values())
    wrong = [
        f"{row.id} of {row.design} is judged, and not promised: the report is of another "
        "specification"
        for row in judged.values()
        if row.id not in promised.get(Place(row.guarantee, row.design), ())
    ]
    whole = list[Place]()
    partly = list[Place]()
    for place, seen in counts.items():
        is_whole = seen.total() == len(promised.get(place, ()))
        if seen - counts_in(said.get(place, "")) or (is_whole and said.get(place) != cell(seen)):
            wrong.append(f"{place}: docs/verdicts.md says {said.get(place)}, the run {cell(seen)}")
        else:
            (whole if is_whole else partly).append(place)
    designs = {design for design, _ in judged}
    unseen = [place for place in promised if place.design in designs and place not in counts]
    return Comparison(wrong, whole, partly, unseen)


def promised_rows() -> dict[Place, set[str]]:
    """Return the ids of the rows that each design promises, by cell."""
    known = catalogue.load()
    found: dict[Place, set[str]] = {}
    for design in DESIGNS:
        for row in promised(known, manifest.load(design)):
            found.setdefault(Place(known.by_row[row.id].guarantee, design), set()).add(row.id)
    return found


def judged_whole(
    promised: dict[Place, set[str]], rows: list[report.RowResult]
) -> dict[Place, Counter[Verdict]]:
    """Count the verdicts of each design that is judged whole.

    Each promised row of the design was judged then, and no other row.
    """
    found: dict[Place, Counter[Verdict]] = {}
    for design in DESIGNS:
        mine = [row for row in rows if row.design == design]
        ids = [ids for place, ids in promised.items() if place.design == design]
        if {row.id for row in mine} == set().union(*ids):
            found |= counted(mine)
        elif mine:
            print(f"{design} is not judged whole, so its cells stay out")
    return found


def card_of(row: report.RowResult) -> str:
    """Write a row's red card, short, and without what is new in every run."""
    short = row.model_copy(update={"anomalies": row.anomalies[:1], "shrunk": [], "log": []})
    again = f"upheld run --design {row.design} --only '@{row.scenario}'"
    card = report.card(short, again)
    return RUN_NAMES.sub("", card)


def write(judged: dict[Place, Counter[Verdict]], cards: list[str]) -> None:
    """Put the table into its page, and families and the first card into the README."""
    if judged:
        TABLE.put(VERDICTS, table(judged))
    FAMILIES.put(README, families(cells_in(TABLE.of(VERDICTS))))
    if cards:
        CARD.put(README, f"```\n{cards[0]}\n```\n")


def main(arguments: list[str]) -> int:
    """Compare, or write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write what the reports say")
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.jsonl")
    asked = parser.parse_args(arguments)
    found = [row for path in asked.reports if path.exists() for row in report.read(path)[0]]
    rows = [row for row in found if row.design in DESIGNS and row.repetition == 0]
    promised = promised_rows()
    if asked.write:
        cards = [card_of(row) for row in found if row.design not in DESIGNS and row.anomalies]
        write(judged_whole(promised, rows), cards)
        return 0
    for row in rows:
        if row.code is Reason.MACHINE_LACKS:
            print(f"{row.id} of {row.design} is not compared: {row.reason}")
    there = [row for row in rows if row.code is not Reason.MACHINE_LACKS]
    if not there:
        print("nothing is compared: these reports hold no row of a design in docs/verdicts.md")
        return 1
    comparison = compared(cells_in(TABLE.of(VERDICTS)), promised, there)
    print(comparison.text())
    return int(bool(comparison.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
