"""Choose the rows of `quick` and `core`: the cheapest that meet every demand.

    python tools/cover.py [--costs REPORT.jsonl…] [--write]

A row costs its shipped seconds of all designs together; or, with --costs, the seconds that it takes
in all of these reports. A wrong design costs the seconds of the row that catches it and of its
control. Seconds differ from run to run, so what stands is left only for what costs CHANGED_S less.
Without --write the choice is printed alone. With it, each Examples table is split by depth. Then
each wrong design's design.toml names the row that catches it first, and its control.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import highspy
import tomlkit

from upheld.checks import CHECKS
from upheld.judging import prerequisites
from upheld.lint.cover import EVERYTHING, Demand, alternates, core_demands, quick_demands
from upheld.protocol.manifest import Manifest, load, shipped
from upheld.spec import catalogue, durations, kills
from upheld.spec.depths import DEPTHS, Depth
from upheld.spec.gherkin import Scenario
from upheld.spec.selection import RELEASES_TAG, promised, rows_of_the_mutant
from upheld.verdicts import NotOffered

FEATURES = Path(__file__).parents[1] / "features"
UNKNOWN_S = 3.0  # of a row that no report has: not chosen without need
# So often a row has to have caught a wrong design that does not name it, and nothing else, before
# it is believed.
STEADY = 10
PASSED = 3  # so often a row has to have been upheld before it can be a control
NEW_S = 0.5  # so much less has another control to cost before it is taken
DECLINED_S = 20.0  # so much less than another has a row to cost that a measured design declines
CHANGED_S = 2.0  # so much less have others to cost than a row that has its depth already
LEAST_S = 0.5  # a kill that was measured in no time costs its trial all the same


@dataclass
class Choice:
    """The rows that the solver has chosen."""

    quick: set[str] = field(default_factory=set)
    core: set[str] = field(default_factory=set)  # those of quick too
    # wrong design -> the rows that catch it
    caught: dict[str, list[str]] = field(default_factory=dict)
    control: dict[str, str] = field(default_factory=dict)


def costs(reports: Collection[Path]) -> dict[str, float]:
    """Return the seconds that each row took, over the reports together."""
    seconds = Counter[str]()
    for report in reports:
        for line in report.read_text(encoding="utf-8").split("\n"):
            row = json.loads(line) if line.startswith('{"kind":"row"') else None
            if row and row["verdict"] == "upheld":
                seconds[row["id"]] += row["seconds"]
    return dict(seconds)


def shipped_costs(found: catalogue.Catalogue) -> dict[str, float]:
    """Return the seconds of each row, over the designs whose durations are shipped.

    A row that is newer than the durations has the seconds of those that are like it.
    """
    known = durations.load()
    usual = [row.id for row in promised(found, EVERYTHING)]
    return {row: sum(known.seconds(name, row) for name in known.designs) for row in usual}


class Cover:
    """The demands as a mixed integer program.

    It has a binary variable for each row, and one for each row that catches or passes a wrong
    design.
    """

    def __init__(
        self,
        found: catalogue.Catalogue,
        seconds: Mapping[str, float],
        matrix: kills.Kills,
        standing: Collection[str],
    ) -> None:
        self.found = found
        self.seconds = seconds
        self.matrix = matrix
        self.standing = standing  # the rows that have the depth already
        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        usual = [row.id for row in promised(found, EVERYTHING)]
        self.declined = _declined(found)
        self.rows = {row: self.solver.addBinary(obj=self.price(row)) for row in usual}
        self.stands_in = {
            other: row for row, others in alternates(found).items() for other in others
        }
        self.catches: dict[tuple[str, str], highspy.highs.highs_var] = {}
        self.passes: dict[tuple[str, str], highspy.highs.highs_var] = {}

    def cost(self, row: str) -> float:
        """Return the seconds that a row costs a run of every design that is judged often."""
        return self.seconds.get(row, UNKNOWN_S)

    def price(self, row: str) -> float:
        """Return what choosing a row costs: more, if it is new, or is declined."""
        declined = DECLINED_S if row in self.declined else 0
        return self.cost(row) + declined + (0 if row in self.standing else CHANGED_S)

    def demand(self, demand: Demand) -> None:
        """Have one of its rows chosen."""
        self.solver.addConstr(sum(self.rows[row] for row in demand.rows) >= 1)

    def choose(self, rows: Collection[str]) -> None:
        """Have these rows chosen."""
        for row in rows:
            self.solver.addConstr(self.rows[row] >= 1)

    def wrong(self, design: Manifest) -> None:
        """Have a wrong design caught by one row of core, by its anomaly, and pass another."""
        assert design.sin
        judged = self.matrix.designs.get(design.name, kills.Judged())
        as_told = design.model_copy(update={"sin": design.sin.model_copy(update={"core": ()})})
        named = rows_of_the_mutant(self.found, as_told) - {design.sin.control}
        caught = {
            row: kill.seconds
            for row, kill in judged.killed.items()
            if kill.anomaly == design.sin.anomaly and (kill.times >= STEADY or row in named)
        }
        for row in named - {*judged.killed, *judged.upheld}:
            if judged.unproven.get(row) != kills.UNSTEADY:  # its tests prove it
                caught[row] = self.cost(row)
        upheld = {row for row, times in judged.upheld.items() if times >= PASSED}
        if judged.unproven.get(design.sin.control) != kills.UNSTEADY:  # its tests prove it
            upheld.add(design.sin.control)
        upheld -= {*judged.killed, *caught}
        for row in caught.keys() - set(design.sin.core):
            caught[row] += CHANGED_S
        passed = {
            row: self.cost(row) / 2 + (NEW_S if row != design.sin.control else 0) for row in upheld
        }
        for kind, rows in ((self.catches, caught), (self.passes, passed)):
            variables = []
            for row, seconds in rows.items():
                chosen = self.rows.get(self.stands_in.get(row, row))
                if chosen is None:  # a soak row
                    continue
                kind[design.name, row] = variable = self.solver.addBinary(obj=max(LEAST_S, seconds))
                self.solver.addConstr(variable <= chosen)
                variables.append(variable)
            if not variables:
                raise SystemExit(
                    f"no row is known that {design.name} "
                    f"{'fails' if kind is self.catches else 'passes'}"
                )
            self.solver.addConstr(sum(variables) >= 1)

    def every_check_catches(self) -> list[str]:
        """Have each check catch a wrong design, if any is known that the check catches.

        Returns:
            The checks that are known to catch none.
        """
        by_check = defaultdict[str, list[highspy.highs.highs_var]](list)
        for (design, row), variable in self.catches.items():
            if kill := self.matrix.of(design).get(row):
                by_check[kill.check].append(variable)
        for check, variables in by_check.items():
            if check:
                self.solver.addConstr(sum(variables) >= 1)
        return sorted(catalogue_checks() - set(by_check))

    def solve(self) -> Choice:
        """Return the cheapest choice.

        Raises:
            SystemExit: No choice meets every demand.
        """
        self.solver.run()
        status = self.solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise SystemExit(f"no rows meet every demand: {status}")
        value = self.solver.val
        choice = Choice(core={row for row, variable in self.rows.items() if value(variable) > 0.5})
        for (design, row), variable in self.catches.items():
            if value(variable) > 0.5:
                choice.caught.setdefault(design, []).append(row)
        choice.control = {
            design: row for (design, row), variable in self.passes.items() if value(variable) > 0.5
        }
        return choice


def catalogue_checks() -> set[str]:
    """Return the names of all checks."""
    return set(CHECKS)


def chosen(found: catalogue.Catalogue, seconds: Mapping[str, float], matrix: kills.Kills) -> Choice:
    """Return the cheapest rows of quick, and with them those of core."""
    first = Cover(found, seconds, matrix, _standing(found, "quick"))
    for demand in quick_demands(found):
        first.demand(demand)
    quick = first.solve().core
    whole = Cover(found, seconds, matrix, _standing(found, "quick", "core"))
    whole.choose(quick)
    for demand in core_demands(found):
        whole.demand(demand)
    for design in map(load, filter(lambda name: name.startswith("broken/"), shipped())):
        if design.previous is None:  # no row on one release catches it
            whole.wrong(design)
    for check in whole.every_check_catches():
        print(f"the check {check} is not known to catch a wrong design")
    choice = whole.solve()
    choice.quick = quick
    return choice


def _declined(found: catalogue.Catalogue) -> set[str]:
    """Return the rows that are known beforehand to be unsupported by a measured design."""
    declined = set()
    for name in durations.load().designs:
        design = load(name)
        for row in promised(found, design):
            try:
                prerequisites.demand(row, design, broker_is_ours=True, is_secured=False)
            except NotOffered:
                declined.add(row.id)
    return declined


def _standing(found: catalogue.Catalogue, *depths: Depth) -> set[str]:
    return {row.id for each in found.scenarios for row in each.rows if row.depth in depths}


def depths(found: catalogue.Catalogue, choice: Choice) -> dict[str, Depth]:
    """Return the depth of every row; a row that stands in for another has the same.

    Rows on two releases cost a run of one nothing, so they keep theirs.
    """
    depth: dict[str, Depth] = {
        row.id: row.depth if RELEASES_TAG in row.tags else "full"
        for scenario in found.scenarios
        for row in scenario.rows
    }
    for row in choice.core:
        depth[row] = "quick" if row in choice.quick else "core"
    for row, others in alternates(found).items():
        depth.update(dict.fromkeys(others, depth[row]))
    return depth


def write_features(found: catalogue.Catalogue, depth: Mapping[str, Depth]) -> None:
    """Split the Examples of every scenario by depth.

    Each table keeps its lines, its comments and their order.
    """
    for feature in found.features:
        path = FEATURES / feature.file
        lines = path.read_text(encoding="utf-8").split("\n")
        scenarios = [scenario for scenario in found.scenarios if scenario.feature == feature]
        for scenario in sorted(scenarios, key=lambda scenario: -scenario.line):
            _split(lines, scenario, depth)
        path.write_text("\n".join(lines), encoding="utf-8")


def _split(lines: list[str], scenario: Scenario, depth: Mapping[str, Depth]) -> None:
    """Write the Examples of one scenario anew; lines are counted from 1."""
    rows = sorted(scenario.rows, key=lambda row: row.line)
    last = rows[-1].line
    begin = max(step.line for step in scenario.steps)
    while not lines[begin].strip().startswith(("@", "Examples:")):
        begin += 1
    head = next(line for line in lines[begin:last] if line.strip().startswith("|"))
    indent = " " * (len(head) - len(head.lstrip()) - 2)
    tables = []
    for each in DEPTHS:
        own = [lines[row.line - 1] for row in rows if depth[row.id] == each]
        if own:
            tables.append("\n".join([f"{indent}@{each}", f"{indent}Examples:", head, *own]))
    lines[begin:last] = "\n\n".join(tables).split("\n")


def write_designs(choice: Choice) -> None:
    """Name the rows that catch a wrong design in core, and its control."""
    for name, rows in choice.caught.items():
        design = load(name)
        document = tomlkit.parse(design.file.read_text(encoding="utf-8"))
        sin = document["sin"]
        array = tomlkit.array()
        array.extend(sorted(rows))
        if "core" in sin:
            sin["core"] = array
        else:
            head = list(sin.items())
            for key in list(sin):
                sin.remove(key)
            for key, value in head:
                sin[key] = value
                if key == "scenarios":
                    sin["core"] = array
        if str(sin["control"]) != choice.control[name]:
            sin.remove("control")  # with the comment that says why it is one
            sin["control"] = choice.control[name]
        design.file.write_text(tomlkit.dumps(document), encoding="utf-8")


def main() -> int:
    """Choose rows, print how many and what they cost, and write them if asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--costs",
        type=Path,
        nargs="+",
        metavar="REPORT",
        help="of whole runs (default: the shipped durations)",
    )
    parser.add_argument(
        "--write", action="store_true", help="into the features and the wrong designs"
    )
    arguments = parser.parse_args()
    found = catalogue.load()
    seconds = costs(arguments.costs) if arguments.costs else shipped_costs(found)
    choice = chosen(found, seconds, kills.load())
    depth = depths(found, choice)
    for row in (row for each in found.scenarios for row in each.rows if depth[row.id] != row.depth):
        print(f"{row.id}: {row.depth} -> {depth[row.id]}, {seconds.get(row.id, UNKNOWN_S):.1f} s")
    whole_s = sum(seconds.values())
    for name, rows in (("quick", choice.quick), ("core", choice.core)):
        own_s = sum(seconds.get(row, UNKNOWN_S) for row in rows)
        print(f"{name}: {len(rows)} rows, {own_s:.0f} of {whole_s:.0f} s, {own_s / whole_s:.0%}")
    if arguments.write:
        write_features(found, depth)
        write_designs(choice)
    return 0


if __name__ == "__main__":
    sys.exit(main())
