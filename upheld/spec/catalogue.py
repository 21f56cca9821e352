"""What is promised: the guarantees of guarantees.toml and the scenarios that judge them.

Read without pytest, so that `list`, `explain`, `lint`, the plugin and the reports agree on what a
run has to judge and on what a row is called.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, Self, cast

from cucumber_tag_expressions import parse as parse_tags  # type: ignore[import-untyped]
from cucumber_tag_expressions.parser import TagExpressionError  # type: ignore[import-untyped]
from gherkin.errors import ParserError
from gherkin.parser import Parser
from gherkin.pickles.compiler import Compiler
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from upheld.errors import UsageProblem
from upheld.spec.depths import Depth, Share, depth_of, is_within

FEATURES: Final = Path(__file__).parents[1] / "features"
FILE_NAME: Final = "guarantees.toml"
MODES: Final = ("at_least_once", "exactly_once")
PROGRAMS: Final = (
    "relay",
    "ledger",
    "branches",
    "pulse",
    "batcher",
    "clients",
    "tickers",
    "holdings",
)
EVERY_PROGRAM: Final = "all"
ASKED_FOR: Final = "@soak"  # judged only by who asks for it
ONE_MODE: Final = "@one-mode"  # judged in the stricter mode that a design has
ONE_PROGRAM: Final = "@one-program"  # judged on the later in PROGRAMS that a design has
THROUGH_PROXY: Final = "@wire"  # its instances reach the broker through the proxy
ON_A_CLUSTER: Final = "@cluster"  # it runs on a cluster of three brokers
TIMED: Final = "@timed"  # it judges milliseconds, so nothing may boot meanwhile
ID_TAG: Final = re.compile(
    r"@(?P<id>(?P<guarantee>G[1-9]\d*|SLA)\.(?P<slug>[a-z0-9]+(-[a-z0-9]+)*))"
)

StepType = Literal["given", "when", "then"]

_STEP_TYPES: Final[Mapping[str, StepType]] = {
    "Context": "given",
    "Action": "when",
    "Outcome": "then",
}
_RUNS: Final = re.compile(rf"\b({'|'.join(PROGRAMS)})\b.*?\bmode ({'|'.join(MODES)})\b")
_MODE: Final = re.compile(rf"\bmode ({'|'.join(MODES)})\b")
VERSION: Final = r"^\d+\.\d+\.\d+$"
_HEAD: Final = re.compile(r"(Documented in|Broken by|Costs):")


class Guarantee(BaseModel):
    """One promise, in the project's own words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^(G[1-9]\d*|SLA)$")
    promise: str = Field(min_length=1)
    family: str
    programs: tuple[str, ...] = Field(min_length=1)
    parts: tuple[str, ...] = ()  # what a compound promise has a scenario each for
    source: str | None = None
    section: str | None = None
    strength: Literal["documented", "beyond"]
    status: Literal["specified", "untested"]
    why: str | None = None
    since: str = Field(pattern=VERSION)  # the version that judged it first
    rows_since: Mapping[str, Annotated[str, Field(pattern=VERSION)]] = {}  # of rows that came later

    @model_validator(mode="after")
    def _says_where_and_why(self) -> Self:
        if (self.strength == "documented") != bool(self.source and self.section):
            raise ValueError(
                "source and section are given where the strength is documented, and only there"
            )
        if (self.status == "untested") != bool(self.why):
            raise ValueError("why is given where the status is untested, and only there")
        if unknown := [name for name in self.programs if name not in {*PROGRAMS, EVERY_PROGRAM}]:
            raise ValueError(
                f"{unknown[0]} is no program; there are {', '.join(PROGRAMS)}, or {EVERY_PROGRAM}"
            )
        return self

    @property
    def specified(self) -> bool:
        """Whether scenarios judge it."""
        return self.status == "specified"


@dataclass(frozen=True, slots=True)
class Step:
    """One sentence of a scenario, by the keyword that it stands under: And and But are resolved."""

    type: StepType | None
    text: str
    line: int
    table: tuple[tuple[str, ...], ...] = ()  # the rows of cells below it, the head first

    @property
    def whole(self) -> str:
        """The text, and that of each cell below it."""
        return " ".join([self.text, *(cell for cells in self.table for cell in cells)])


@dataclass(frozen=True, slots=True)
class Row:
    """One thing to be judged: a scenario for one program in one mode, named
    `G22.slug[program-mode-store or point]`.
    """

    id: str
    program: str | None
    mode: str | None
    needs: frozenset[tuple[str, str]]  # every program and mode that its sentences run
    cells: Mapping[str, str]
    steps: tuple[Step, ...]
    line: int
    # Its Examples table's, its scenario's and the feature's, each with its @.
    tags: frozenset[str] = frozenset()

    @property
    def depth(self) -> Depth:
        """The least depth at which a run judges it."""
        return depth_of(self.tags)

    def offered(self, programs: Collection[str], modes: Collection[str]) -> bool:
        """Whether a design with these programs and modes has promised to uphold the row."""
        return bool(self.needs) and all(
            program in programs and mode in modes for program, mode in self.needs
        )


@dataclass(frozen=True, slots=True)
class Feature:
    """One .feature file, with the parts of its head; what is missing is empty."""

    name: str
    file: str
    line: int
    tags: tuple[str, ...]
    promise: str
    documented_in: str
    broken_by: str
    costs: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """One claim and the rows it is judged on."""

    name: str
    feature: Feature
    line: int
    ids: tuple[str, ...]  # exactly one, says the lint
    tags: frozenset[str]  # its own and the feature's, each with its @
    columns: tuple[str, ...]
    example_tags: tuple[str, ...]
    steps: tuple[Step, ...]  # as written, placeholders and all
    rows: tuple[Row, ...]

    @property
    def id(self) -> str:
        """The stable address, such as `G22.crash-before-commit`."""
        return self.ids[0] if self.ids else ""

    @property
    def guarantee(self) -> str:
        """The id of the guarantee that it judges."""
        return self.id.partition(".")[0]

    @property
    def family(self) -> str:
        """The folder that its feature is in."""
        return self.feature.file.rpartition("/")[0]

    @property
    def place(self) -> str:
        """File and line, for a person to go to."""
        return f"{self.feature.file}:{self.line}"

    @property
    def is_usual(self) -> bool:
        """Whether every run judges it; what takes long or much is judged where its tag asks for
        it.
        """
        return ASKED_FOR not in self.tags


Chosen = Callable[[Scenario, Row], bool]


def is_usual(scenario: Scenario, _: Row) -> bool:
    """Choose every row that is not kept for those who ask for it."""
    return scenario.is_usual


def within(depth: Depth, share: Share | None = None) -> Chosen:
    """Choose the usual rows of a depth, and of the others a share."""

    def chosen(scenario: Scenario, row: Row) -> bool:
        is_chosen = is_within(row.depth, depth) or (share is not None and share.holds(row.id))
        return scenario.is_usual and is_chosen

    return chosen


class Manifest(Protocol):
    """What the catalogue asks of a design: what it has promised to be judged on."""

    @property
    def name(self) -> str: ...  # noqa: D102 (a manifest's own words)
    @property
    def programs(self) -> Collection[str]: ...  # noqa: D102
    @property
    def modes(self) -> Collection[str]: ...  # noqa: D102


@dataclass(frozen=True)
class Catalogue:
    """All guarantees and all scenarios."""

    guarantees: Mapping[str, Guarantee]
    features: tuple[Feature, ...]
    scenarios: tuple[Scenario, ...]
    sources: Mapping[str, str]  # file of an article -> its title
    tags: Mapping[str, str]  # tag without @ -> what it means

    @cached_property
    def by_id(self) -> Mapping[str, Scenario]:
        """Every scenario under its id."""
        return {scenario.id: scenario for scenario in self.scenarios if scenario.id}

    @cached_property
    def by_row(self) -> Mapping[str, Scenario]:
        """The scenario that each row belongs to."""
        return {row.id: scenario for scenario in self.scenarios for row in scenario.rows}

    def since(self, row: Row) -> str:
        """Return the version that judged a row first; empty if the row is of no guarantee."""
        guarantee = self.guarantees.get(self.by_row[row.id].guarantee)
        return guarantee.rows_since.get(row.id, guarantee.since) if guarantee else ""

    def rows(self, chosen: Chosen = is_usual) -> Iterator[Row]:
        """Go through the chosen rows."""
        return (
            row for scenario in self.scenarios for row in scenario.rows if chosen(scenario, row)
        )

    def promised(
        self,
        manifest: Manifest,
        chosen: Chosen = is_usual,
        modes: Collection[str] = MODES,
    ) -> tuple[Row, ...]:
        """The chosen rows that a design has promised: of its programs, in its modes, or in one of
        them where that is enough.
        """
        found: list[Row] = []
        has = [mode for mode in MODES if mode in modes and mode in manifest.modes]
        for scenario in self.scenarios:
            rows = [row for row in scenario.rows if row.offered(manifest.programs, has)]
            if ONE_MODE in scenario.tags:
                rows.sort(key=lambda row: has.index(row.mode or ""))
                rows = list({row.program: row for row in rows}.values())
            if ONE_PROGRAM in scenario.tags:
                rows.sort(key=lambda row: PROGRAMS.index(row.program or ""))
                rows = list({row.mode: row for row in rows}.values())
            found += (row for row in rows if chosen(scenario, row))
        return tuple(found)

    def chooser(self, *, only: str | None = None, guarantees: Iterable[str] = ()) -> Chosen:
        """Turn `--only` (a Cucumber tag expression) and `--guarantee` into one question to a row.

        A tag may be written without its @, and a guarantee's id stands for all its usual scenarios.
        """
        ids = {self.guarantee(name).id for name in guarantees}
        if only is None:
            return lambda scenario, _: scenario.is_usual and (not ids or scenario.guarantee in ids)
        try:
            expression = parse_tags(only)
        except TagExpressionError as error:
            reason = " ".join(str(error).split()).partition(" Expression:")[0]
            raise UsageProblem(
                f"--only {only!r} is no tag expression: {reason.rstrip('.')}."
            ) from None
        known = {f"@{name}" for name in (*self.guarantees, *self.tags)}
        known.update(*(row.tags for scenario in self.scenarios for row in scenario.rows))
        named = {f"@{name.removeprefix('@')}" for name in _tag_names(expression)}
        for name in sorted(named - known):
            raise UsageProblem(
                f"--only: nothing is tagged {name}.{_near(name, known)} `upheld list` shows all "
                "ids."
            )

        def chosen(scenario: Scenario, row: Row) -> bool:
            tags = row.tags | {f"@{scenario.guarantee}"}
            values = tags | {tag.removeprefix("@") for tag in tags}
            asked_for = scenario.is_usual or named & {ASKED_FOR, f"@{scenario.id}"}
            return (not ids or scenario.guarantee in ids) and bool(
                asked_for and expression.evaluate(values)
            )

        return chosen

    def guarantee(self, name: str) -> Guarantee:
        """Find a guarantee by its id, or by the id of one of its scenarios or rows."""
        if guarantee := self.guarantees.get(name.removeprefix("@").partition(".")[0]):
            return guarantee
        near = _near(name, self.guarantees)
        raise UsageProblem(f"{name} is no guarantee.{near} `upheld list` shows all of them.")

    def listing(
        self,
        manifests: Iterable[Manifest] = (),
        chosen: Chosen = is_usual,
    ) -> dict[str, Any]:
        """What `upheld list --json` prints: the rows, and the counts that a run is held to."""
        untested = [guarantee for guarantee in self.guarantees.values() if not guarantee.specified]
        rows = [
            (scenario, row)
            for scenario in self.scenarios
            for row in scenario.rows
            if chosen(scenario, row)
        ]
        return {
            "guarantees": {
                "all": len(self.guarantees),
                "specified": len(self.guarantees) - len(untested),
                "untested": len(untested),
            },
            "scenarios": len({scenario.id for scenario, _ in rows}),
            "rows": [
                {
                    "id": row.id,
                    "guarantee": scenario.guarantee,
                    "scenario": scenario.id,
                    "name": scenario.name,
                    "program": row.program,
                    "mode": row.mode,
                    "depth": row.depth,
                    "since": self.since(row),
                    "family": scenario.family,
                    "tags": sorted(row.tags),
                }
                for scenario, row in rows
            ],
            "untested": [{"id": guarantee.id, "why": guarantee.why} for guarantee in untested],
            "designs": {
                manifest.name: {"promised": len(rows), "rows": [row.id for row in rows]}
                for manifest in manifests
                for rows in [self.promised(manifest, chosen)]
            },
        }

    def explanation(
        self, name: str, anomalies_of: Callable[[Scenario], Iterable[str]] = lambda _: ()
    ) -> dict[str, Any]:
        """What `upheld explain` tells; `anomalies_of` names what a scenario can find."""
        guarantee = self.guarantee(name)
        scenarios = [scenario for scenario in self.scenarios if scenario.guarantee == guarantee.id]
        features = {scenario.feature.file: scenario.feature for scenario in scenarios}.values()
        return {
            **guarantee.model_dump(mode="json"),
            "title": self.sources.get(guarantee.source or ""),
            "broken_by": [feature.broken_by for feature in features if feature.broken_by],
            "costs": [feature.costs for feature in features if feature.costs],
            "scenarios": [
                {
                    "id": scenario.id,
                    "name": scenario.name,
                    "file": scenario.feature.file,
                    "line": scenario.line,
                    "rows": [row.id for row in scenario.rows],
                    "anomalies": list(anomalies_of(scenario)),
                }
                for scenario in scenarios
            ],
        }


def load(features: Path = FEATURES) -> Catalogue:
    """Read the guarantees and every feature below a folder."""
    file = features / FILE_NAME
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageProblem(f"{file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{file} is not TOML: {error}.") from None
    sources, tags = tables.pop("sources", {}), tables.pop("tags", {})
    guarantees = {}
    for name, table in tables.items():
        try:
            guarantees[name] = Guarantee.model_validate({"id": name, **table})
        except (ValidationError, TypeError) as error:
            raise UsageProblem(f"{file}: [{name}] {_first(error)}.") from None
        if guarantees[name].family not in tags:
            raise UsageProblem(
                f"{file}: [{name}] is of the family {guarantees[name].family!r}, not one of [tags]."
            )
        if guarantees[name].source not in {None, *sources}:
            raise UsageProblem(f"{file}: [{name}] has a source that [sources] gives no title.")
    read = [
        read_feature(path, path.relative_to(features).as_posix())
        for path in sorted(features.rglob("*.feature"))
    ]
    return Catalogue(
        guarantees=guarantees,
        features=tuple(feature for feature, _ in read),
        scenarios=tuple(scenario for _, scenarios in read for scenario in scenarios),
        sources=sources,
        tags=tags,
    )


def read_feature(path: Path, name: str) -> tuple[Feature, list[Scenario]]:
    """Parse one feature file; `name` is what findings and reports call it."""
    try:
        document = Parser().parse(path.read_text(encoding="utf-8"))
    except ParserError as error:
        reason = (getattr(error, "errors", None) or [error])[0]
        raise UsageProblem(f"{path} is no feature: {' '.join(str(reason).split())}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path} cannot be read: {error}.") from None
    root = cast(dict[str, Any] | None, document.get("feature"))
    if root is None:
        raise UsageProblem(f"{path} holds no feature; write one or remove the file.")
    compiled: dict[str, list[dict[str, Any]]] = {}
    for pickle in Compiler().compile(cast(Any, {**document, "uri": name})):
        compiled.setdefault(pickle["astNodeIds"][0], []).append(cast(dict[str, Any], pickle))
    feature = _feature(root, name)
    return feature, [
        _scenario(node, feature, feature.tags + inherited, compiled.get(node["id"], []))
        for node, inherited in _nodes(root["children"])
    ]


def as_text(explanation: Mapping[str, Any]) -> str:
    """Set an explanation for a terminal."""
    lines = [f"{explanation['id']}  {explanation['promise']}", ""]
    if explanation["source"]:
        title = explanation["title"] or explanation["source"]
        lines.append(f"Documented in: {title}, “{explanation['section']}”")
    else:
        lines.append("Beyond the articles.")
    lines.append(f"Programs:      {', '.join(explanation['programs'])}")
    lines += [f"Part:          {part}" for part in explanation["parts"]]
    lines += [f"Broken by:     {reason}" for reason in explanation["broken_by"]]
    lines += [f"Costs:         {cost}" for cost in explanation["costs"]]
    if explanation["status"] == "untested":
        lines.append(f"Untested:      {explanation['why']}")
    for scenario in explanation["scenarios"]:
        lines += [
            "",
            f"{scenario['id']}  {scenario['name']}",
            f"  {scenario['file']}:{scenario['line']}",
        ]
        lines += [f"  {row}" for row in scenario["rows"]]
        if scenario["anomalies"]:
            lines.append(f"  finds: {', '.join(scenario['anomalies'])}")
    return "\n".join(lines) + "\n"


def _feature(root: Mapping[str, Any], name: str) -> Feature:
    promise, *labelled = _HEAD.split(" ".join(root["description"].split()))
    said = {label: text.strip() for label, text in zip(labelled[::2], labelled[1::2], strict=True)}
    return Feature(
        name=root["name"],
        file=name,
        line=root["location"]["line"],
        tags=tuple(tag["name"] for tag in root["tags"]),
        promise=promise.strip(),
        documented_in=said.get("Documented in", ""),
        broken_by=said.get("Broken by", ""),
        costs=said.get("Costs", ""),
    )


def _nodes(
    children: Iterable[Mapping[str, Any]], tags: tuple[str, ...] = ()
) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Find the scenarios of a feature, those in its rules too, each with the tags of its rule."""
    for child in children:
        if "scenario" in child:
            yield child["scenario"], tags
        elif "rule" in child:
            rule = child["rule"]
            yield from _nodes(rule["children"], tags + tuple(tag["name"] for tag in rule["tags"]))


def _scenario(
    node: Mapping[str, Any],
    feature: Feature,
    inherited: tuple[str, ...],
    pickles: list[dict[str, Any]],
) -> Scenario:
    own = tuple(tag["name"] for tag in node["tags"])
    ids = tuple(match["id"] for tag in own if (match := ID_TAG.fullmatch(tag)))
    cells = {
        row["id"]: {
            head["value"]: cell["value"]
            for head, cell in zip(example["tableHeader"]["cells"], row["cells"], strict=True)
        }
        for example in node["examples"]
        for row in example.get("tableBody", ())
    }
    types: list[StepType | None] = []
    for step in node["steps"]:
        kind = _STEP_TYPES.get(step["keywordType"])
        types.append(kind or (types[-1] if types else None))
    lines = {step["id"]: step["location"]["line"] for step in node["steps"]}
    return Scenario(
        name=node["name"],
        feature=feature,
        line=node["location"]["line"],
        ids=ids,
        tags=frozenset(own + inherited),
        columns=tuple(
            cell["value"]
            for example in node["examples"]
            for cell in example.get("tableHeader", {"cells": ()})["cells"]
        ),
        example_tags=tuple(tag["name"] for example in node["examples"] for tag in example["tags"]),
        steps=tuple(
            Step(kind, step["text"], step["location"]["line"], _cells(step.get("dataTable", {})))
            for kind, step in zip(types, node["steps"], strict=True)
        ),
        rows=tuple(
            _row(pickle, ids[0] if ids else "", cells.get(pickle["astNodeIds"][-1], {}), lines)
            for pickle in pickles
        ),
    )


def _cells(table: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(cell["value"] for cell in row["cells"]) for row in table.get("rows", ()))


def _row(
    pickle: Mapping[str, Any], scenario: str, cells: Mapping[str, str], lines: Mapping[str, int]
) -> Row:
    line = pickle["location"]["line"]
    steps = tuple(
        Step(
            _STEP_TYPES.get(step["type"]),
            step["text"],
            lines.get(step["astNodeIds"][0], line),
            _cells(step.get("argument", {}).get("dataTable", {})),
        )
        for step in pickle["steps"]
    )
    runs = [match.groups() for step in steps for match in _RUNS.finditer(step.text)]
    program = cells.get("program") or (runs[0][0] if runs else None)
    said = [match[1] for step in steps if (match := _MODE.search(step.text))]
    mode = cells.get("mode") or (said[0] if said else None)
    needs = {(found[0], found[1]) for found in runs}
    if program and mode:
        needs.add((program, mode))
    kept = [cells[name] for name in ("store", "side", "request") if name in cells]
    name = f"{scenario}[{'-'.join([program, mode, *kept])}]" if program and mode else scenario
    tags = frozenset(tag["name"] for tag in pickle["tags"])
    return Row(name, program, mode, frozenset(needs), cells, steps, line, tags)


def _tag_names(expression: Any) -> Iterator[str]:
    if name := getattr(expression, "name", None):
        yield name
    inner = getattr(expression, "terms", None) or filter(None, [getattr(expression, "term", None)])
    for term in inner:
        yield from _tag_names(term)


def _near(name: str, known: Iterable[str]) -> str:
    found = get_close_matches(name, sorted(known), n=1)
    return f" Did you mean {found[0]}?" if found else ""


def _first(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return "is no table"
    details = error.errors()[0]
    where = ".".join(str(part) for part in details["loc"])
    return f"{where}: {details['msg']}" if where else details["msg"].removeprefix("Value error, ")
