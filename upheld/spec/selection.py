"""Which rows a run judges: of all that a design has promised, those that the options choose."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from upheld.errors import UsageProblem
from upheld.protocol.manifest import Manifest
from upheld.spec.catalogue import MODES, PROGRAMS, Catalogue, Chosen, Row, within
from upheld.spec.depths import DEFAULT, Depth, Share, is_within

Rows = dict[str, set[str]]  # design -> the ids of its rows


@dataclass(frozen=True)
class Request:
    """What was asked for; nothing asked for is everything within the usual depth.

    Whoever names tags or guarantees gets every match, whatever its depth, unless a depth is asked
    for too.
    """

    only: str | None = None  # a Cucumber tag expression
    guarantees: Sequence[str] = ()
    programs: Sequence[str] = ()
    modes: Sequence[str] = ()
    depth: Depth | None = None
    share: Share | None = None  # of what the depth leaves out
    file: Path | None = None  # that names rows, a design and a row's id a line

    @property
    def is_narrowed(self) -> bool:
        """Whether it names what is to be judged, so that a wrong design's own list counts no
        longer.
        """
        return bool(self.only or self.guarantees or self.programs or self.modes)

    @property
    def depth_asked(self) -> Depth:
        """The depth that is judged."""
        return self.depth or ("full" if self.only or self.guarantees or self.file else DEFAULT)

    def chooser(self, found: Catalogue) -> Chosen:
        """Turn all of it, the file aside, into one question to a row."""
        by_tag = found.chooser(only=self.only, guarantees=self.guarantees)
        if self.depth_asked == "full":
            return by_tag
        by_depth = within(self.depth_asked, self.share)
        return lambda scenario, row: by_tag(scenario, row) and by_depth(scenario, row)


def chosen_rows(request: Request, found: Catalogue, designs: Iterable[Manifest]) -> Rows:
    """Choose the rows of each design, from what it has promised.

    Raises:
        UsageProblem: The request or a design names something that does not exist.
    """
    if request.share and request.depth_asked == "full":
        raise UsageProblem(
            "--slice adds to a depth below full, and all rows are chosen already; name a --depth."
        )
    if request.file:
        return rows_of_the_file(request.file, found, designs)
    for given, known, what in (
        (request.programs, PROGRAMS, "program"),
        (request.modes, MODES, "mode"),
    ):
        for name in given:
            if name not in known:
                raise UsageProblem(f"There is no {what} {name!r}; there are {', '.join(known)}.")
    chooser = request.chooser(found)
    return {
        design.name: rows_of_the_sin(found, design, request.depth_asked)
        if design.sin and not request.is_narrowed
        else {
            row.id
            for row in found.promised(design, chooser, request.modes or MODES)
            if not request.programs or row.program in request.programs
        }
        for design in designs
    }


def rows_of_the_file(path: Path, found: Catalogue, designs: Iterable[Manifest]) -> Rows:
    """Read which rows of which design are chosen; all of them have to be promised."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path} cannot be read: {error}.") from None
    promised = {design.name: {row.id for row in found.promised(design)} for design in designs}
    chosen: Rows = {name: set() for name in promised}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name, _, row_id = line.strip().partition(" ")
        if row_id.strip() not in promised.get(name, set()):
            said = (
                f"{path}: line {number} names no row that one of the designs has promised: "
                f"{line[:200]!r}."
            )
            raise UsageProblem(said)
        chosen[name].add(row_id.strip())
    return chosen


def rows_of_the_sin(found: Catalogue, design: Manifest, depth: Depth = "full") -> set[str]:
    """Find the rows on which a wrong design has to be caught, and the one that it has to pass.

    At full depth that is the first row of each program of each scenario that it names, and each row
    that it names. Below that those of its rows of core are enough that the depth holds; without one
    the design is not judged there.
    """
    sin = design.sin
    assert sin
    promised = found.promised(design)
    core, others = (
        [row for name in names for row in _named(found, design, name, promised)]
        for names in (sin.core, sin.scenarios)
    )
    caught = [row for row in core if is_within(row.depth, depth)]
    if depth == "full":
        caught += others
    control = _named(found, design, sin.control, promised) if sin.control and caught else []
    return {row.id for row in (*caught, *control)}


def _named(found: Catalogue, design: Manifest, name: str, promised: Collection[Row]) -> list[Row]:
    """Find the row of that name, or the first of each program of a scenario."""
    if name not in found.by_id and name not in found.by_row:
        raise UsageProblem(
            f"{design.file}: [sin] names {name}, and there is no such scenario or row."
        )
    scenario = found.by_row.get(name) or found.by_id[name]
    mine = {row.id for row in promised}
    rows = [row for row in scenario.rows if row.id in mine and name in {row.id, scenario.id}]
    if not rows:
        raise UsageProblem(
            f"{design.file}: [sin] names {name}, which the design's programs and modes leave out."
        )
    return list({row.program: row for row in reversed(rows)}.values())[::-1]


def demand_known(found: Catalogue, designs: Iterable[Manifest]) -> None:
    """Refuse a known failure of something that does not exist: it would hide nothing, and look as
    if it did.
    """
    for design in designs:
        for known in design.known_failures:
            if known not in found.by_id and known not in found.by_row:
                said = (
                    f"{design.file}: known_failures names {known}, and there is no such scenario "
                    "or row."
                )
                raise UsageProblem(said)
