"""`index.html`: one offline file that shows one report, or several side by side.

Guarantees stand one below the other, by family; each design of each run is a column. A cell opens
the scenarios of its guarantee, with what each row came to and why.
"""

import base64
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from jinja2 import Environment, PackageLoader

from upheld.report.costs import costs
from upheld.report.folder import named_in
from upheld.report.matrix import Line, Matrix
from upheld.report.model import RowResult
from upheld.report.oracles import rests_on
from upheld.report.pictures import drawing
from upheld.report.texts import GuaranteeText, ScenarioText
from upheld.text import printable, visible
from upheld.verdicts import Verdict

MOST_CARDS: Final = 60  # the others are counted and linked
MOST_PICTURE_BYTES: Final = 600_000  # of all that are in the page; the others are linked
REPORT: Final = "report.jsonl"


@dataclass(frozen=True)
class Result:
    """A row of one column, as the page shows it."""

    row: RowResult
    column: int  # the number of its column
    anchor: str
    has_card: bool  # whether the page has it
    picture: str  # the URL of its drawing, with the drawing in it; empty if the page has none
    links: Mapping[str, str]  # what is linked -> its URL, as seen from the page

    @property
    def program(self) -> str:
        """The program; empty if the row's id names none."""
        return self._inside.partition("-")[0]

    @property
    def mode(self) -> str:
        """The mode of processing; empty if the row's id names none."""
        return next((each for each in self._inside.split("-") if each.endswith("_once")), "")

    @property
    def _inside(self) -> str:
        return self.row.id.partition("[")[2].removesuffix("]")


class Block(NamedTuple):
    """A scenario, and its results in all columns."""

    text: ScenarioText
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Entry:
    """A guarantee on the page: its line of the matrix, and what opens below it."""

    line: Line
    text: GuaranteeText
    blocks: tuple[Block, ...]

    def words(self) -> str:
        """Return the text that the filter looks through, in lower case."""
        named = [self.line.guarantee, self.line.promise]
        for block in self.blocks:
            named += [block.text.name, *(result.row.id for result in block.results)]
        return visible(" ".join(named)).lower()

    def seconds(self, column: int) -> float:
        """Return how long the rows of a column took."""
        return sum(
            result.row.seconds
            for block in self.blocks
            for result in block.results
            if result.column == column
        )

    def evidence(self, column: int) -> int:
        """Return how many marks the rows of a column left."""
        return sum(
            len(result.row.marks)
            for block in self.blocks
            for result in block.results
            if result.column == column
        )


def page(
    found: Matrix,
    texts: Mapping[str, GuaranteeText],
    folders: Sequence[Path],
    at: Path,
    hints: Iterable[str] = (),
) -> str:
    """Return the page of reports.

    Args:
        found: What was judged.
        texts: Id of a guarantee -> what the catalogue says of it.
        folders: The output folder of each report, where its pictures lie.
        at: The folder that the page will lie in, from which it links other files.
        hints: What a reader of the verdicts has to know beside them.
    """
    results, left_out = _results(found, folders, at)
    entries = [_entry(line, texts, results) for line in found.lines]
    families = dict.fromkeys(entry.text.family for entry in entries)
    environment = Environment(
        loader=PackageLoader("upheld.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible"] = lambda text: visible(str(text))
    environment.filters["marked"] = _marked
    environment.filters["rests"] = rests_on
    environment.filters["counted"] = lambda number, what: f"{number} {what}{'s' * (number != 1)}"
    environment.filters["printable"] = lambda text: printable(str(text))
    return environment.get_template("page.html.j2").render(
        found=found,
        heads=[found.head(column) for column in found.columns],
        families={name: [e for e in entries if e.text.family == name] for name in families},
        verdicts=[str(verdict) for verdict in Verdict],
        programs=sorted({r.program for each in results.values() for r in each} - {""}),
        modes=sorted({r.mode for each in results.values() for r in each} - {""}),
        differences=sum(line.differs for line in found.lines) if len(found.summaries) > 1 else 0,
        left_out=left_out,
        spent=dict(costs(found)),
        hints=list(hints),
    )


def _results(
    found: Matrix, folders: Sequence[Path], at: Path
) -> tuple[Mapping[str, list[Result]], int]:
    """Return the results by scenario, and how many cards had no room."""
    results = defaultdict[str, list[Result]](list)
    cards = left_out = picture_bytes = 0
    for row, report, column in found.judged:
        has_card = row.has_card and cards < MOST_CARDS
        cards += has_card
        left_out += row.has_card and not has_card
        picture = _picture(folders[report], row) if has_card else ""
        if picture_bytes + len(picture) > MOST_PICTURE_BYTES:
            picture = ""
        picture_bytes += len(picture)
        names = {"history": row.history}
        if row.has_card and not picture:
            names["picture"] = row.picture
        if row.has_card and not has_card:
            names["its card is in the report"] = REPORT
        results[row.scenario].append(
            Result(
                row=row,
                column=column,
                anchor=f"{row.id}-{column + 1}-{row.repetition + 1}",
                has_card=has_card,
                picture=picture,
                links=dict(_links(names, folders[report], at)),
            )
        )
    return results, left_out


def _links(names: Mapping[str, str], folder: Path, at: Path) -> Iterator[tuple[str, str]]:
    """Go through the links to those files that are in the folder of the report."""
    for label, name in names.items():
        if path := named_in(folder, name):
            relative = os.path.relpath(path.resolve(), at.resolve())
            yield label, quote(relative)


def _marked(mark: Mapping[str, object]) -> str:
    """Return a mark in words: what happened, when, and with which evidence."""
    said = f"{mark.get('fault', 'without a name')}, after {mark.get('at_ms', '?')} ms"
    evidence = mark.get("evidence")
    pairs = evidence.items() if isinstance(evidence, Mapping) else ()
    return visible("; ".join([said, *(f"{name} {value}" for name, value in pairs)]))


def _entry(
    line: Line, texts: Mapping[str, GuaranteeText], results: Mapping[str, list[Result]]
) -> Entry:
    text = texts.get(line.guarantee, GuaranteeText("others", "unknown to this version", "", ()))
    known = {scenario.id: scenario for scenario in text.scenarios}
    ids = [name for name in results if name.partition(".")[0] == line.guarantee]
    names = [name for name in known if name in results] + [n for n in ids if n not in known]
    blocks = tuple(Block(_scenario(name, known, results), tuple(results[name])) for name in names)
    return Entry(line, text, blocks)


def _scenario(
    name: str, known: Mapping[str, ScenarioText], results: Mapping[str, list[Result]]
) -> ScenarioText:
    return known.get(name) or ScenarioText(name, results[name][0].row.name, "", "")


def _picture(folder: Path, row: RowResult) -> str:
    """Return a URL that holds the drawing of a row; empty if there is none."""
    svg = drawing(folder, row)
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode() if svg else ""
