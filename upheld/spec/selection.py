"""The choice of rows: those of a design's promised rows that the options choose."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, cast

from cucumber_tag_expressions import parse as _parse
from cucumber_tag_expressions.parser import TagExpressionError

import upheld
from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.programs import PROGRAMS
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import MODES
from upheld.reading import read_text
from upheld.spec.catalogue import Catalogue, parts_of
from upheld.spec.depths import DEFAULT, Depth, Share, is_within
from upheld.spec.gherkin import SOAK_TAG, Row, Scenario

ONE_MODE_TAG: Final = "@one-mode"  # judged in the stricter mode that a design has
RELEASES_TAG: Final = "@two-releases"  # judged if a release before the design is named
QUERIES_TAG: Final = "@queries"  # an application that answers queries stands for the program
ONE_PROGRAM_TAG: Final = "@one-program"  # judged on the later in PROGRAMS that a design has

MOST_CHARS: Final = 1 << 14  # of an expression
MOST_TERMS: Final = 400  # one within the other, as in `a or b or c`
SHOWN_CHARS: Final = 100  # of an expression that is refused
_NAME_ROWS: Final = "--rows FILE takes a row a line"

Chosen = Callable[[Scenario, Row], bool]
Rows = dict[str, set[str]]  # design -> the ids of its rows


class TagExpression(Protocol):
    """A Cucumber tag expression, as its library has parsed it."""

    def evaluate(self, values: Collection[str]) -> bool:
        """Return whether these tags satisfy it."""
        ...


def is_usual(scenario: Scenario, _: Row) -> bool:
    """Choose every row that is not kept for those who ask for it."""
    return scenario.is_usual


def within(depth: Depth, share: Share | None = None) -> Chosen:
    """Choose the usual rows of a depth, and of the others a share."""

    def chosen(scenario: Scenario, row: Row) -> bool:
        is_chosen = is_within(row.depth, depth) or (share is not None and share.holds(row.id))
        return scenario.is_usual and is_chosen

    return chosen


def rows(found: Catalogue, chosen: Chosen = is_usual) -> Iterator[Row]:
    """Go through the chosen rows of the catalogue."""
    return (row for scenario in found.scenarios for row in scenario.rows if chosen(scenario, row))


def promised(
    found: Catalogue,
    design: Manifest,
    chosen: Chosen = is_usual,
    modes: Collection[str] = MODES,
    programs: Collection[str] = PROGRAMS,
) -> tuple[Row, ...]:
    """Return the chosen rows that a design has promised, of its programs and modes.

    A row that is newer than the version of the specification that it pins is not among them.
    A scenario that is judged in one mode, or on one program, has one row of those that differ in
    nothing else. That row has one of the modes and programs that are asked for.
    A design that follows another release has promised the rows on two releases, and no others. They
    are of the programs and modes that both have.
    """
    kept: list[Row] = []
    order = list(PROGRAMS)
    for scenario in found.scenarios:
        offered = [
            row
            for row in scenario.rows
            if is_offered(row, design)
            and is_on_its_releases(row, design)
            and row.program in programs
            and row.mode in modes
            and not found.is_newer(row, design.spec)
        ]
        if ONE_MODE_TAG in scenario.tags:
            offered.sort(key=lambda row: MODES.index(row.mode or ""))
            offered = list({row.program: row for row in offered}.values())
        if ONE_PROGRAM_TAG in scenario.tags:
            offered.sort(key=lambda row: order.index(row.program or ""))
            offered = list({row.mode: row for row in offered}.values())
        kept += (row for row in offered if chosen(scenario, row))
    return tuple(kept)


def is_offered(row: Row, design: Manifest) -> bool:
    """Return whether a design has the program and the modes of a row.

    An application without an adapter has a shape and no program of ours. If it answers queries, it
    stands for each program that is asked.
    """
    if design.application is None:
        return row.offered(design.programs, design.modes)
    if QUERIES_TAG in row.tags and design.application.query:
        return bool(row.needs) and all(mode in design.modes for _, mode in row.needs)
    return row.shape is not None and row.offered(design.programs, design.modes)


def is_on_its_releases(row: Row, design: Manifest) -> bool:
    """Return whether a row takes as many releases as a design is judged with.

    Both of two releases have to offer it. Every row is offered if the earlier one is there to say
    what is right.
    """
    earlier = design.previous
    takes_two = RELEASES_TAG in row.tags
    if earlier is None:
        return not takes_two
    if not takes_two and design.compared_with != "previous":
        return False
    return is_offered(row, earlier)


def chooser(found: Catalogue, *, only: str | None = None, guarantees: Iterable[str] = ()) -> Chosen:
    """Turn `--only` and `--guarantee` into one question to a row.

    `--only` is a Cucumber tag expression. A tag may be written without its @, and a guarantee's id
    stands for all its usual scenarios.

    Raises:
        UsageProblem: The expression is none, or names a tag or guarantee that does not exist.
    """
    ids = {found.guarantee(name).id for name in guarantees}
    if only is None:
        return lambda scenario, _: scenario.is_usual and (not ids or scenario.guarantee in ids)
    expression = _tag_expression(only)
    named = {f"@{name.removeprefix('@')}" for name in _tag_names(only, expression)}
    _demand_tags(found, named)

    def chosen(scenario: Scenario, row: Row) -> bool:
        tags = row.tags | {f"@{scenario.guarantee}"}
        values = tags | {tag.removeprefix("@") for tag in tags}
        is_named = scenario.is_usual or bool(named & {SOAK_TAG, f"@{scenario.id}"})
        is_guarantee_chosen = not ids or scenario.guarantee in ids
        return is_guarantee_chosen and is_named and expression.evaluate(values)

    return chosen


def _tag_expression(text: str) -> TagExpression:
    if len(text) > MOST_CHARS:
        raise UsageProblem(f"--only has more than {MOST_CHARS} characters; {_NAME_ROWS}.")
    try:
        return cast(TagExpression, _parse(text))
    except (TagExpressionError, RecursionError) as error:
        reason = " ".join(str(error).split()).partition(" Expression:")[0]
        raise UsageProblem(
            f"--only {_short(text)} is no tag expression: {reason[:200].rstrip('.')}."
        ) from None


def _tag_names(text: str, expression: object) -> Iterator[str]:
    """Go through the tags that an expression names.

    Raises:
        UsageProblem: Its terms are nested too deeply to be evaluated.
    """
    terms = [expression]
    for _ in range(MOST_TERMS):
        yield from (name for term in terms if (name := getattr(term, "name", None)))
        terms = [inner for term in terms for inner in _inner(term)]
        if not terms:
            return
    raise UsageProblem(f"--only {_short(text)} nests more than {MOST_TERMS} terms; {_NAME_ROWS}.")


def _inner(term: object) -> Iterable[object]:
    """Return the terms of which a term is made."""
    if negated := getattr(term, "term", None):
        return (negated,)
    return cast(Iterable[object], getattr(term, "terms", ()))


def _short(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…")


def _demand_tags(found: Catalogue, named: Iterable[str]) -> None:
    """Refuse a tag that neither the catalogue nor a row has."""
    known = {f"@{name}" for name in (*found.guarantees, *found.tags)}
    known.update(*(row.tags for scenario in found.scenarios for row in scenario.rows))
    for name in sorted(set(named) - known):
        raise UsageProblem(
            f"--only: nothing is tagged {name}.{did_you_mean(name, known)} `upheld list` shows all "
            "ids."
        )


@dataclass(frozen=True)
class Request:
    """The rows that were asked for.

    An empty request is everything within the usual depth. A request that names tags or guarantees
    gets every match, whatever its depth, unless it asks for a depth too.
    """

    only: str | None = None  # a Cucumber tag expression
    guarantees: Sequence[str] = ()
    programs: Sequence[str] = ()
    modes: Sequence[str] = ()
    depth: Depth | None = None
    share: Share | None = None  # of the rows that the depth leaves out
    file: Path | None = None  # that names rows, a design and a row's id a line

    @property
    def is_narrowed(self) -> bool:
        """Whether it names what is to be judged.

        Then a wrong design's own list does not count.
        """
        return bool(self.only or self.guarantees or self.programs or self.modes)

    @property
    def depth_asked(self) -> Depth:
        """The depth that is judged."""
        return self.depth or ("full" if self.only or self.guarantees or self.file else DEFAULT)

    def chooser(self, found: Catalogue) -> Chosen:
        """Turn all of it, the file aside, into one question to a row."""
        by_tag = chooser(found, only=self.only, guarantees=self.guarantees)
        by_depth = within(self.depth_asked, self.share)

        def chosen(scenario: Scenario, row: Row) -> bool:
            is_asked = _is_among(row.program, self.programs) and _is_among(row.mode, self.modes)
            is_deep = self.depth_asked == "full" or by_depth(scenario, row)
            return is_asked and is_deep and by_tag(scenario, row)

        return chosen


def _is_among(name: str | None, asked: Collection[str]) -> bool:
    """Return whether a name is asked for; each one is if none is."""
    return not asked or name in asked


def chosen_rows(request: Request, found: Catalogue, designs: Iterable[Manifest]) -> Rows:
    """Choose the rows of each design, from those that it has promised.

    Raises:
        UsageProblem: The request or a design names something that does not exist.
    """
    if request.share and request.depth_asked == "full":
        raise UsageProblem(
            "--slice adds to a depth below full, and all rows are chosen already; name a --depth."
        )
    if request.file:
        return rows_of_the_file(request.file, found, designs)
    demand_listed(request.programs, request.modes)
    by_request = request.chooser(found)
    return {design.name: _rows_of(request, found, design, by_request) for design in designs}


def newer_rows(request: Request, found: Catalogue, design: Manifest) -> list[str]:
    """Return the ids of the rows that are left out since a design pins a version.

    Raises:
        UsageProblem: The request or the design names something that does not exist.
    """
    if design.spec is None or request.file:
        return []
    free = design.model_copy(update={"spec": None})
    asked = chosen_rows(request, found, [free])[design.name]
    return sorted(asked - chosen_rows(request, found, [design])[design.name])


def demand_specs(found: Catalogue, designs: Iterable[Manifest]) -> None:
    """Refuse a pin of a version that is not there yet, or that no row is as old as.

    Raises:
        UsageProblem: A design has one.
    """
    oldest = min((each.since for each in found.guarantees.values()), key=parts_of, default="")
    for design in designs:
        if design.spec is None:
            continue
        pin = parts_of(design.spec)
        if pin > parts_of(upheld.__version__)[: len(pin)]:
            raise UsageProblem(
                f"{design.file}: `spec` is {design.spec}, and this is upheld "
                f"{upheld.__version__}; install a newer one, or pin an older one."
            )
        if oldest and pin < parts_of(oldest)[: len(pin)]:
            raise UsageProblem(
                f"{design.file}: `spec` is {design.spec}, and no row is as old; the first version "
                f"is {oldest}."
            )


def demand_listed(programs: Iterable[str], modes: Iterable[str]) -> None:
    """Refuse a program or a mode that does not exist.

    Raises:
        UsageProblem: An option names one.
    """
    _demand_known("program", programs, PROGRAMS)
    _demand_known("mode", modes, MODES)


def _demand_known(what: str, given: Iterable[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise UsageProblem(
                f"There is no {what} {name!r}; there are {', '.join(known)}."
                f"{did_you_mean(name, known)}"
            )


def _rows_of(request: Request, found: Catalogue, design: Manifest, by_request: Chosen) -> set[str]:
    own = own_rows(found, design, request)
    if own is not None:
        return own
    modes = request.modes or MODES
    programs = request.programs or PROGRAMS
    return {row.id for row in promised(found, design, by_request, modes, programs)}


def own_rows(found: Catalogue, design: Manifest, request: Request) -> set[str] | None:
    """Find the rows that a wrong design or a twin is judged on.

    Returns:
        Their ids, or None for any other design, and if the request names what is to be judged.
    """
    if request.is_narrowed:
        return None
    if design.sin:
        return rows_of_the_mutant(found, design, request.depth_asked)
    return rows_of_the_twin(found, design) if design.twin else None


def rows_of_the_file(path: Path, found: Catalogue, designs: Iterable[Manifest]) -> Rows:
    """Read the chosen rows from lines of a design and a row's id.

    Raises:
        UsageProblem: The file cannot be read, or names a row that its design has not promised.
    """
    lines = read_text(path).split("\n")
    offered = {design.name: _offered(found, design) for design in designs}
    chosen: Rows = {name: set() for name in offered}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name, _, row_id = line.strip().partition(" ")
        if row_id.strip() not in offered.get(name, set()):
            said = (
                f"{path}: line {number} names no row that one of the designs has promised: "
                f"{line[:200]!r}.{did_you_mean(row_id.strip(), offered.get(name, ()))}"
            )
            raise UsageProblem(said)
        chosen[name].add(row_id.strip())
    return chosen


def _offered(found: Catalogue, design: Manifest) -> set[str]:
    """Return the ids of all rows that some request may choose of a design.

    A row of a scenario that is judged on one program is among them, whichever that is.
    """
    return {
        row.id
        for scenario in found.scenarios
        if scenario.is_usual
        for row in scenario.rows
        if is_offered(row, design)
        and is_on_its_releases(row, design)
        and not found.is_newer(row, design.spec)
    }


def rows_of_the_mutant(found: Catalogue, design: Manifest, depth: Depth = "full") -> set[str]:
    """Find the rows that have to catch a wrong design, and its control.

    At full depth these are the first row of each program of each scenario that the design names,
    and each row that it names. Below full depth those rows of its `core` are enough that the depth
    holds. If the depth holds none of them, the design is not judged.
    """
    sin = design.sin
    assert sin
    offered = promised(found, design)
    core = [row for name in sin.core for row in _named(found, design, name, offered)]
    others = [row for name in sin.scenarios for row in _named(found, design, name, offered)]
    caught = [row for row in core if is_within(row.depth, depth)]
    if depth == "full":
        caught += others
    control = _named(found, design, sin.control, offered) if sin.control and caught else []
    return {row.id for row in (*caught, *control)}


def rows_of_the_twin(found: Catalogue, design: Manifest) -> set[str]:
    """Find the rows on which a twin is judged, at whatever depth.

    A scenario that it names stands for the first row of each program.
    """
    twin = design.twin
    assert twin
    offered = promised(found, design)
    return {row.id for name in twin.rows for row in _named(found, design, name, offered)}


def _named(found: Catalogue, design: Manifest, name: str, offered: Collection[Row]) -> list[Row]:
    """Find the row of that name, or the first of each program of a scenario."""
    table = "twin" if design.twin else "sin"
    if name not in found.by_id and name not in found.by_row:
        raise UsageProblem(
            f"{design.file}: [{table}] names {name}, and there is no such scenario or row."
            f"{did_you_mean(name, (*found.by_id, *found.by_row))}"
        )
    scenario = found.by_row.get(name) or found.by_id[name]
    own = {row.id for row in offered}
    named = [row for row in scenario.rows if row.id in own and name in {row.id, scenario.id}]
    if not named:
        raise UsageProblem(
            f"{design.file}: [{table}] names {name}, which the design's programs and modes leave "
            "out."
        )
    return list({row.program: row for row in reversed(named)}.values())[::-1]


def demand_programs(designs: Iterable[Manifest]) -> None:
    """Refuse a program that does not exist; nothing of it would be judged.

    Raises:
        UsageProblem: A design names one.
    """
    for design in designs:
        for name in design.programs:
            if name not in PROGRAMS:
                raise UsageProblem(
                    f"{design.file}: `programs` names {name!r}; there are {', '.join(PROGRAMS)}."
                    f"{did_you_mean(name, PROGRAMS)}"
                )


def demand_known(found: Catalogue, designs: Iterable[Manifest]) -> None:
    """Refuse a known failure of a scenario or row that does not exist.

    It would hide nothing, and look as if it did.

    Raises:
        UsageProblem: A design names one.
    """
    for design in designs:
        for known in design.known_failures:
            if known not in found.by_id and known not in found.by_row:
                said = (
                    f"{design.file}: known_failures names {known}, and there is no such scenario "
                    f"or row.{did_you_mean(known, (*found.by_id, *found.by_row))}"
                )
                raise UsageProblem(said)
