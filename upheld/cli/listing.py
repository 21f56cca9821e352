"""`list`: the promises, and what each design has promised. No broker."""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, NamedTuple

from rich.text import Text

from upheld.cli.choices import manifests, request_of
from upheld.cli.options import ALONE, LATEST
from upheld.errors import UsageProblem
from upheld.judging.choosing import chosen_rows
from upheld.judging.prerequisites import ruled_out
from upheld.protocol.manifest import Manifest
from upheld.protocol.subject import OF_APPLICATIONS
from upheld.reading import is_file
from upheld.report import COLOURS, file_of, matrix, read
from upheld.report.matrix import Cell
from upheld.report.reasons import pinned
from upheld.spec import catalogue, explain
from upheld.spec.catalogue import Catalogue, Guarantee
from upheld.spec.depths import DEPTHS
from upheld.spec.explain import Listing
from upheld.spec.gherkin import Row
from upheld.spec.power import power, power_together
from upheld.spec.selection import (
    QUERIES_TAG,
    RELEASES_TAG,
    Request,
    demand_specs,
    newer_rows,
)
from upheld.text import visible_data, wrapped
from upheld.ui.console import console, width
from upheld.verdicts import Verdict

MOST_COLUMNS: Final = 4  # of designs of the last run; the others are counted
GAP: Final = "  "
NOTHING: Final = "-"
MODEL: Final = "model"  # the oracle of a program of the suite

Groups = dict[str, list[str]]  # a reason -> the ids that it concerns


@dataclass(frozen=True)
class LastRun:
    """The verdicts of the last run, if there is one and its report can be read.

    Attributes:
        said: Where they come from, or why there are none; empty if there was no run.
        ended: When the run ended.
        cells: Design -> guarantee -> its verdicts.
        unsupported: Design -> reason -> the rows that it made unsupported.
    """

    said: str = ""
    ended: str = ""
    cells: Mapping[str, Mapping[str, Cell]] = field(default_factory=dict)
    unsupported: Mapping[str, Groups] = field(default_factory=dict)


class Offered(NamedTuple):
    """The chosen rows that a design has promised, and why others are missing."""

    design: str
    rows: Counter[str]  # by guarantee
    lacking: Counter[str]  # of them, those that are unsupported, by guarantee
    unsupported: Groups  # reason -> rows
    not_promised: Groups  # reason -> guarantees
    oracle: str  # what says what is right
    judged: dict[str, str]  # row -> the oracle and its power there, or that it is unsupported
    programs: tuple[str, ...]  # whose rows they are
    may_skip: bool  # whether its outputs may skip states, for all that it declares


def list_promises(arguments: argparse.Namespace) -> int:
    """Print guarantees by family, or rows, and what each design has promised."""
    found = catalogue.load()
    designs = manifests(arguments)
    by_rows = arguments.rows is not None
    if arguments.rows == ALONE:
        arguments.rows = None
    request = request_of(arguments)
    if not arguments.depth:  # a list without a depth shows all rows
        request = replace(request, depth="full")
    demand_specs(found, designs)
    chosen = chosen_rows(request, found, designs)
    named = set().union(*chosen.values())
    asked = request.chooser(found)
    listing = explain.listing(
        found, designs, lambda scenario, row: asked(scenario, row) or row.id in named
    )
    newer = {design.name: newer_rows(request, found, design) for design in designs}
    _count(listing, chosen, chosen_rows(Request(depth="full"), found, designs), newer)
    if request.file:
        listing["rows"] = [row for row in listing["rows"] if row["id"] in named]
    offers = [_offered(found, design, listing, chosen[design.name]) for design in designs]
    last = last_run(found)
    if arguments.json:
        print(json.dumps(_data(found, listing, offers, last), indent=2))
        return 0
    if by_rows:
        _print_rows(listing, offers)
    else:
        _print_families(found, listing, offers, last)
    _print_counts(listing, offers)
    ends = [*pinned({each.name: each.spec for each in designs if each.spec}, newer)]
    for line in (*ends, *(line for offer in offers for line in _ends(offer, last))):
        print(wrapped(line, width(), indent=2))
    if last.said and not by_rows:
        print(last.said)
    return 0


def _count(
    listing: Listing,
    chosen: Mapping[str, set[str]],
    everything: Mapping[str, set[str]],
    newer: Mapping[str, list[str]],
) -> None:
    """Put into a listing which rows each design is asked for, of all that it has promised.

    Beside them stand those that are newer than the version that it pins.
    """
    for name, ids in chosen.items():
        listing["designs"][name] = {
            "promised": len(everything[name]),
            "chosen": len(ids),
            "rows": sorted(ids),
            "newer": newer[name],
        }


def last_run(found: Catalogue) -> LastRun:
    """Return the verdicts of the last run in this folder."""
    file = file_of(LATEST)
    if not is_file(file):
        return LastRun()
    try:
        rows, summary = read(file)
    except UsageProblem as problem:
        return LastRun(f"no verdict of the last run: {problem}")
    judged = matrix([(rows, summary)], found.promises)
    cells = {
        column.design: {
            line.guarantee: cell for line in judged.lines if (cell := line.cells[number])
        }
        for number, column in enumerate(judged.columns)
    }
    unsupported = {column.design: defaultdict[str, list[str]](list) for column in judged.columns}
    for row in rows:
        if row.verdict is Verdict.UNSUPPORTED and row.id not in unsupported[row.design][row.reason]:
            unsupported[row.design][row.reason].append(row.id)
    when = f" ended {summary.ended}" if summary.ended else ""
    hidden = len(cells) - MOST_COLUMNS
    others = f"; {hidden} more designs are in it, which --design names" if hidden > 0 else ""
    return LastRun(f"the last run{when}: {file}{others}", summary.ended, cells, unsupported)


def _offered(
    found: Catalogue, design: Manifest, listing: Listing, chosen: Collection[str]
) -> Offered:
    """Return what a design has promised, by its manifest alone."""
    oracle = design.application.oracle if design.application else MODEL
    offer = Offered(
        design=design.name,
        rows=Counter(),
        lacking=Counter(),
        unsupported=defaultdict(list),
        not_promised=defaultdict(list),
        oracle=oracle,
        judged={},
        programs=design.programs,
        may_skip=design.emits is None
        and bool(design.application and design.application.shape == "fold"),
    )
    others = defaultdict[str, list[Row]](list)
    for listed in listing["rows"]:
        row = next(row for row in found.by_row[listed["id"]].rows if row.id == listed["id"])
        guarantee = listed["guarantee"]
        if row.id not in chosen:
            others[guarantee].append(row)
            continue
        offer.rows[guarantee] += 1
        reasons = list(ruled_out(row, design))
        offer.judged[row.id] = Verdict.UNSUPPORTED if reasons else _judged_by(row, offer)
        if reasons:
            offer.lacking[guarantee] += 1
            offer.unsupported[reasons[0]].append(row.id)
    newer = listing["designs"][design.name]["newer"]
    for guarantee, rows in others.items():
        if not offer.rows[guarantee]:
            is_newer = any(row.id in newer for row in rows)
            why = f"{design.name} pins spec {design.spec}" if is_newer else _why_not(design, rows)
            offer.not_promised[why].append(guarantee)
    return offer


def _judged_by(row: Row, offer: Offered) -> str:
    """Return the oracle of a row, and how many wrong designs it catches there."""
    known = power(row.id, offer.oracle, by_last_value=offer.may_skip)
    return f"{offer.oracle} {known}" if known else offer.oracle


def _why_not(design: Manifest, rows: Iterable[Row]) -> str:
    """Return why a design has promised none of these rows."""
    rows = list(rows)
    if design.previous is None and all(RELEASES_TAG in row.tags for row in rows):
        return "it takes two releases, which `upheld run --from N --to N+1` names"
    programs = dict[str, None]()
    modes = dict[str, None]()
    for row in rows:
        programs |= {program: None for program, _ in row.needs if program not in design.programs}
        modes |= {mode: None for _, mode in row.needs if mode not in design.modes}
    if design.application and (why := _why_no_application(rows)):
        return f"{design.name} {why}"
    if programs:
        return f"{design.name} has no program {' or '.join(sorted(programs))}"
    if modes:
        return f"{design.name} has no mode {' or '.join(sorted(modes))}"
    return f"{design.name} is judged on other rows"


def _why_no_application(rows: Iterable[Row]) -> str:
    """Return why these rows are for no application without an adapter; empty if others are."""
    rows = list(rows)
    if all(QUERIES_TAG in row.tags for row in rows):
        return "answers for no key of an output ([query.X] in design.toml)"
    shapes = {row.shape for row in rows if row.shape}
    if not shapes:
        return "runs no program of the suite, on which the promise hangs"
    if others := " or ".join(sorted(shapes.difference(OF_APPLICATIONS))):
        return f"is no {others}"
    return ""


def _data(
    found: Catalogue, listing: Listing, offers: Iterable[Offered], last: LastRun
) -> dict[str, object]:
    """Return the listing as JSON has it."""
    rows = Counter(row["guarantee"] for row in listing["rows"])
    families = [
        {
            "family": family,
            "about": found.tags[family],
            "guarantees": [
                {
                    "id": guarantee.id,
                    "promise": guarantee.promise,
                    "rows": rows[guarantee.id],
                    "last_run": {
                        design: dict(cells[guarantee.id].verdicts)
                        for design, cells in last.cells.items()
                        if guarantee.id in cells
                    },
                }
                for guarantee in guarantees
            ],
        }
        for family, guarantees in _families(found, rows)
    ]
    designs = {
        offer.design: {
            **listing["designs"][offer.design],
            "oracle": offer.oracle,
            "unsupported": offer.unsupported,
            "not_promised": offer.not_promised,
            "unsupported_in_the_last_run": last.unsupported.get(offer.design, {}),
        }
        for offer in offers
    }
    ended = {"report": str(file_of(LATEST)), "ended": last.ended} if last.cells else None
    said = visible_data({"families": families, "designs": designs, "last_run": ended})
    assert isinstance(said, dict)
    return {**listing, **said}


def _families(found: Catalogue, shown: Collection[str]) -> Iterator[tuple[str, list[Guarantee]]]:
    """Go through the families, each with those of its guarantees that are shown."""
    for family in found.tags:
        own = [
            guarantee
            for guarantee in found.guarantees.values()
            if guarantee.family == family and guarantee.id in shown
        ]
        if own:
            yield family, own


def _print_rows(listing: Listing, offers: Collection[Offered]) -> None:
    """Print a line a row, with what each design that was named is judged by on it."""
    widths = [max(map(len, [*offer.judged.values(), NOTHING])) for offer in offers]
    for row in listing["rows"]:
        cells = (
            f"{offer.judged.get(row['id'], NOTHING):<{columns}} "
            for offer, columns in zip(offers, widths, strict=True)
        )
        print(f"{row['depth']:<5} {row['id']:<70} {''.join(cells)}{row['name']}")
    for untested in listing["untested"]:
        print(f"{'-':<5} {untested['id']:<70} untested: {untested['why']}")


def _print_families(
    found: Catalogue, listing: Listing, offers: Collection[Offered], last: LastRun
) -> None:
    """Print a line a guarantee; on a terminal it is cut where the terminal ends."""
    rows = Counter(row["guarantee"] for row in listing["rows"])
    names = [offer.design for offer in offers] or list(islice(last.cells, MOST_COLUMNS))
    judged = [name for name in names if name in last.cells]
    heads = ["", *([f"rows of {offer.design}" for offer in offers] or ["rows"])]
    heads += [f"last run of {name}" for name in judged]
    lines = {
        guarantee.id: [
            Text(guarantee.id),
            *([_share(offer, guarantee.id) for offer in offers] or [Text(str(rows[guarantee.id]))]),
            *(_verdict(last.cells[name].get(guarantee.id)) for name in judged),
        ]
        for guarantee in found.guarantees.values()
    }
    columns = [
        max(len(head), *(len(cells[number]) for cells in lines.values()))
        for number, head in enumerate(heads)
    ]
    say = console()
    fit = width()
    say.print(_line(map(Text, heads), columns, "promise", fit), style="dim")
    untested = {each["id"] for each in listing["untested"]}
    for family, guarantees in _families(found, {*rows, *untested}):
        title = f"{family.replace('_', ' ')}: {found.tags[family]}"
        say.print(_line([Text(title)], [0], "", fit), style="bold")
        for guarantee in guarantees:
            why = f"untested: {guarantee.why}; " if guarantee.why else ""
            say.print(_line(lines[guarantee.id], columns, why + guarantee.promise, fit))


def _line(cells: Iterable[Text], columns: Iterable[int], last: str, fit: int | None) -> Text:
    """Return a line of cells, each as wide as its column, and a last text of any length."""
    line = Text()
    for cell, column in zip(cells, columns, strict=False):
        line += cell
        line += Text(" " * (column - len(cell)) + GAP)
    line += Text(last)
    line.rstrip()
    if fit is not None:
        line.truncate(fit, overflow="ellipsis")
    return line


def _share(offer: Offered, guarantee: str) -> Text:
    """Return how many rows a design has promised, and how many of them are unsupported."""
    number = offer.rows[guarantee]
    if not number:
        return Text(NOTHING, style="dim")
    short = offer.lacking[guarantee]
    return Text(f"{number}, {short} unsupported" if short else str(number))


def _verdict(cell: Cell | None) -> Text:
    return Text(str(cell), style=COLOURS[cell.worst]) if cell else Text(NOTHING, style="dim")


def _print_counts(listing: Listing, offers: Iterable[Offered]) -> None:
    counts = listing["guarantees"]
    depths = Counter(row["depth"] for row in listing["rows"])
    each = ", ".join(f"{depths[depth]} {depth}" for depth in DEPTHS)
    print(
        f"{counts['all']} guarantees, {counts['specified']} specified, {counts['untested']} "
        "untested"
    )
    print(f"{len(listing['rows'])} rows ({each}; a depth holds those before it)")
    for name, design in listing["designs"].items():
        print(
            f"{name} promises {design['promised']} rows; {design['chosen']} of them are chosen here"
        )
    for offer in offers:
        if offer.oracle != MODEL:
            rows = offer.rows.total() - offer.lacking.total()
            kept = sum(offer.rows[name] > offer.lacking[name] for name in offer.rows)
            print(
                f"{offer.design} is judged on {rows} rows of {kept} guarantees, with the oracle "
                f"{offer.oracle}"
            )
            judged = [row for row, by in offer.judged.items() if by != Verdict.UNSUPPORTED]
            caught = power_together(
                judged, offer.oracle, offer.programs, by_last_value=offer.may_skip
            )
            print(f"together they catch {caught} wrong designs of the shape (docs/application.md)")


def _ends(offer: Offered, last: LastRun) -> Iterator[str]:
    """Go through the lines on what a design has not promised, and on what is unsupported."""
    for reason, ids in offer.unsupported.items():
        yield f"unsupported, since {reason}: {', '.join(ids)}"
    declared = {row_id for ids in offer.unsupported.values() for row_id in ids}
    for reason, ids in last.unsupported.get(offer.design, {}).items():
        if found := [row_id for row_id in ids if row_id not in declared]:
            yield f"unsupported in the last run, since {reason}: {', '.join(found)}"
    for reason, ids in offer.not_promised.items():
        yield f"not promised, since {reason}: {', '.join(ids)}"
