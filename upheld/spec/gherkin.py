"""The features, read from `.feature` files into scenarios and rows.

The files are read without pytest. So `list`, `explain`, `lint`, the plugin and the reports agree on
the rows to be judged and on their names.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Final, Literal, NamedTuple, cast

from gherkin import parser_types as ast
from gherkin.ast_builder import AstBuilder
from gherkin.errors import ParserError
from gherkin.parser import Parser
from gherkin.pickles.compiler import (
    Compiler,
    GherkinDocumentWithURI,
    Pickle,
    PickleArgumentDataTableCell,
    PickleArgumentDataTableEnvelope,
    PickleArgumentDataTableRow,
    PickleStep,
)
from gherkin.stream.id_generator import IdGenerator

from upheld.errors import UsageProblem
from upheld.programs import PROGRAMS
from upheld.protocol.messages import MODES
from upheld.reading import read_text
from upheld.shapes import INSTANCES
from upheld.spec.depths import Depth, depth_of

THROUGH_PROXY: Final = "@wire"  # its instances reach the broker through the proxy
ON_A_CLUSTER: Final = "@cluster"  # it runs on a cluster of three brokers
TIMED: Final = "@timed"  # it judges milliseconds, so nothing may boot meanwhile
SOAK_TAG: Final = "@soak"  # judged only if a request names the tag or the scenario
ID_TAG: Final = re.compile(
    r"@(?P<id>(?P<guarantee>G[1-9]\d*|SLA)\.(?P<slug>[a-z0-9]+(-[a-z0-9]+)*))"
)

StepType = Literal["given", "when", "then"]
Table = tuple[tuple[str, ...], ...]  # rows of cells, the head first

_STEP_TYPES: Final[Mapping[str, StepType]] = {
    "Context": "given",
    "Action": "when",
    "Outcome": "then",
}
_RUNS: Final = re.compile(rf"\b({'|'.join(PROGRAMS)})\b.*?\bmode ({'|'.join(MODES)})\b")
_ASKS: Final = re.compile(rf"\ba ({'|'.join(INSTANCES)}) in mode ({'|'.join(MODES)})\b")
_MODE: Final = re.compile(rf"\bmode ({'|'.join(MODES)})\b")
_CHANGED: Final = re.compile(rf"\bstarts in mode ({'|'.join(MODES)})\b")
_HEAD: Final = re.compile(r"(Documented in|Broken by|Costs):")
_WORDS: Final = re.compile(r"[\w -]*")
_NAMING_COLUMNS: Final = ("store", "side", "request")  # whose cells are part of a row's name


@dataclass(frozen=True, slots=True)
class Step:
    """One sentence of a scenario.

    Its type is that of the keyword that it stands under: And and But are resolved.
    """

    type: StepType | None
    text: str
    line: int
    table: Table = ()

    @property
    def whole(self) -> str:
        """Return the text, and that of each cell below it."""
        return " ".join([self.text, *(cell for cells in self.table for cell in cells)])


@dataclass(frozen=True, slots=True)
class Row:
    """One thing to be judged: a scenario for one program in one mode.

    If the scenario asks for a shape, the program is its instance (`upheld.shapes`).
    Its id is `G22.slug[program-mode]`, with a store, a side or a request at its end if it has one.
    """

    id: str
    program: str | None
    mode: str | None
    shape: str | None  # that the scenario asks for; None if it names its program
    needs: frozenset[tuple[str, str]]  # every program and mode that its sentences run
    cells: Mapping[str, str]
    steps: tuple[Step, ...]
    line: int
    # The tags of its Examples table, its scenario and its feature, each with its @.
    tags: frozenset[str] = frozenset()

    @property
    def depth(self) -> Depth:
        """The least depth at which a run judges it."""
        return depth_of(self.tags)

    def offered(self, programs: Collection[str], modes: Collection[str]) -> bool:
        """Return whether a design with these programs and modes has promised the row."""
        return bool(self.needs) and all(
            program in programs and mode in modes for program, mode in self.needs
        )


@dataclass(frozen=True, slots=True)
class Feature:
    """One .feature file, with the parts of its head; a part that is missing is empty."""

    name: str
    file: str
    text: str  # the whole file
    line: int
    tags: tuple[str, ...]
    promise: str
    documented_in: str
    broken_by: str
    costs: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """One claim and the rows on which it is judged."""

    name: str
    feature: Feature
    line: int
    ids: tuple[str, ...]  # the lint demands exactly one
    tags: frozenset[str]  # its own and the feature's, each with its @
    columns: tuple[str, ...]
    example_tags: tuple[str, ...]
    steps: tuple[Step, ...]  # as written, with placeholders
    rows: tuple[Row, ...]
    source: str  # as written in the file, with its tags and Examples

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
        """File and line, where a person finds it."""
        return f"{self.feature.file}:{self.line}"

    @property
    def is_usual(self) -> bool:
        """Whether every run judges it.

        A scenario that takes long or much has a tag, and is judged if a request names it.
        """
        return SOAK_TAG not in self.tags


class ReadFeature(NamedTuple):
    """A feature file that was read, and its scenarios.

    Attributes:
        feature: Its head.
        scenarios: Its scenarios, in its order.
        document: Its syntax tree, with the name that it has in reports.
        pickles: The scenario of each row, with the cells filled in, in the order of the rows.
    """

    feature: Feature
    scenarios: tuple[Scenario, ...]
    document: GherkinDocumentWithURI
    pickles: tuple[Pickle, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all scenarios."""
        return tuple(row for scenario in self.scenarios for row in scenario.rows)


class _Node(NamedTuple):
    """A scenario in the syntax tree, and the tags of its rule."""

    scenario: ast.Scenario
    rule_tags: tuple[str, ...]


def read_feature(path: Path, name: str) -> ReadFeature:
    """Parse one feature file; `name` is what findings and reports call it.

    Raises:
        UsageProblem: The file cannot be read, or holds no feature.
    """
    return parsed(read_text(path), name, path)


def parsed(text: str, name: str, path: Path, ids: IdGenerator | None = None) -> ReadFeature:
    """Parse the text of one feature file.

    Args:
        text: The text.
        name: What findings and reports call the file.
        path: The file, for a message that says what is wrong in it.
        ids: The ids of the nodes and pickles; those of one file alone, if it is None.

    Raises:
        UsageProblem: The text holds no feature.
    """
    ids = ids or IdGenerator()
    try:
        document = Parser(AstBuilder(ids)).parse(text)
    except ParserError as error:
        reason = (getattr(error, "errors", None) or [error])[0]
        raise UsageProblem(f"{path} is no feature: {' '.join(str(reason).split())}.") from None
    root = cast(ast.Feature | None, document.get("feature"))
    if root is None:
        raise UsageProblem(f"{path} holds no feature; write one or remove the file.")
    nodes = list(_nodes(root["children"]))
    for node in nodes:
        _demand_words(path, node.scenario)
    named = cast(GherkinDocumentWithURI, {**document, "uri": name})
    compiled: dict[str, list[Pickle]] = {}
    for pickle in Compiler(ids).compile(named):
        compiled.setdefault(pickle["astNodeIds"][0], []).append(pickle)
    feature = _feature(root, name, text)
    sources = _sources(text, [node.scenario for node in nodes])
    scenarios = tuple(
        _scenario(node, feature, compiled.get(node.scenario["id"], []), source)
        for node, source in zip(nodes, sources, strict=True)
    )
    pickles = tuple(p for node in nodes for p in compiled.get(node.scenario["id"], []))
    return ReadFeature(feature, scenarios, named, pickles)


def _demand_words(path: Path, scenario: ast.Scenario) -> None:
    """Refuse a column that is no word: the compiler takes its name for a regular expression."""
    for example in scenario["examples"]:
        for cell in example["tableHeader"]["cells"] if "tableHeader" in example else ():
            if not _WORDS.fullmatch(cell["value"]):
                raise UsageProblem(
                    f"{path}, line {cell['location']['line']}: the column {cell['value'][:100]!r} "
                    "of Examples is not named by letters and digits."
                )


def _feature(root: ast.Feature, name: str, text: str) -> Feature:
    promise, *labelled = _HEAD.split(" ".join(root["description"].split()))
    parts = {label: text.strip() for label, text in zip(labelled[::2], labelled[1::2], strict=True)}
    return Feature(
        name=root["name"],
        file=name,
        text=text,
        line=root["location"]["line"],
        tags=_names(root["tags"]),
        promise=promise.strip(),
        documented_in=parts.get("Documented in", ""),
        broken_by=parts.get("Broken by", ""),
        costs=parts.get("Costs", ""),
    )


def _nodes(children: Iterable[ast.Envelope], tags: tuple[str, ...] = ()) -> Iterator[_Node]:
    """Find the scenarios of a feature and of its rules, each with its rule's tags."""
    for child in children:
        if "scenario" in child:
            yield _Node(cast(ast.ScenarioEnvelope, child)["scenario"], tags)
        elif "rule" in child:
            rule = cast(ast.RuleEnvelope, child)["rule"]
            yield from _nodes(rule["children"], tags + _names(rule["tags"]))


def _names(tags: Iterable[ast.Tag]) -> tuple[str, ...]:
    return tuple(tag["name"] for tag in tags)


def _sources(text: str, scenarios: Iterable[ast.Scenario]) -> Iterator[str]:
    """Go through the lines of each scenario as they are written, from its first tag on."""
    lines = text.split("\n")
    begins = [
        min(each["location"]["line"] for each in (scenario, *scenario["tags"])) - 1
        for scenario in scenarios
    ]
    for begin, end in pairwise([*begins, len(lines)]):
        own = lines[begin:end]
        while not own[-1].strip() or own[-1].lstrip().startswith("#"):  # above the next one
            own.pop()
        yield dedent("\n".join(own))


def _scenario(found: _Node, feature: Feature, pickles: list[Pickle], source: str) -> Scenario:
    node = found.scenario
    own = _names(node["tags"])
    ids = tuple(match["id"] for tag in own if (match := ID_TAG.fullmatch(tag)))
    cells = dict(_cells(node["examples"]))
    lines = {step["id"]: step["location"]["line"] for step in node["steps"]}
    # Examples that hold no table have no head.
    heads = [
        example["tableHeader"]["cells"] for example in node["examples"] if "tableHeader" in example
    ]
    return Scenario(
        name=node["name"],
        feature=feature,
        line=node["location"]["line"],
        ids=ids,
        tags=frozenset(own + feature.tags + found.rule_tags),
        columns=tuple(cell["value"] for head in heads for cell in head),
        example_tags=tuple(tag for each in node["examples"] for tag in _names(each["tags"])),
        steps=tuple(_steps(node["steps"])),
        rows=tuple(
            _row(pickle, ids[0] if ids else "", cells.get(pickle["astNodeIds"][-1], {}), lines)
            for pickle in pickles
        ),
        source=source,
    )


def _cells(examples: Iterable[ast.Examples]) -> Iterator[tuple[str, dict[str, str]]]:
    """Go through the rows of Examples: the id in the syntax tree, and column -> cell."""
    for example in examples:
        for row in example.get("tableBody", ()):
            named = zip(example["tableHeader"]["cells"], row["cells"], strict=True)
            yield row["id"], {head["value"]: cell["value"] for head, cell in named}


def _steps(nodes: Iterable[ast.Step]) -> Iterator[Step]:
    """Go through the steps as they are written.

    And and But have the type of the step above.
    """
    above: StepType | None = None
    for node in nodes:
        above = _STEP_TYPES.get(node["keywordType"]) or above
        table = node.get("dataTable")
        cells = _texts(table["rows"]) if table else ()
        yield Step(above, node["text"], node["location"]["line"], cells)


def _table(step: PickleStep) -> Table:
    argument = cast(PickleArgumentDataTableEnvelope, step.get("argument", {}))
    if "dataTable" not in argument:
        return ()
    return _texts(argument["dataTable"]["rows"])


def _texts(rows: Iterable[PickleArgumentDataTableRow | ast.TableRow]) -> Table:
    return tuple(tuple(_values(row["cells"])) for row in rows)


def _values(cells: Iterable[PickleArgumentDataTableCell | ast.Cell]) -> Iterator[str]:
    return (cell["value"] for cell in cells)


def _row(pickle: Pickle, scenario: str, cells: Mapping[str, str], lines: Mapping[str, int]) -> Row:
    """Make a row.

    Its cells name program, or shape, and mode; if they do not, its first sentence that runs a
    program does.

    Args:
        pickle: The scenario with the row's cells filled in.
        scenario: The scenario's id.
        cells: Column -> cell of its Examples.
        lines: Id of a step in the syntax tree -> its line.
    """
    line = pickle["location"]["line"]
    steps = tuple(
        Step(
            _STEP_TYPES.get(step["type"]),
            step["text"],
            lines.get(step["astNodeIds"][0], line),
            _table(step),
        )
        for step in pickle["steps"]
    )
    asked = [(ask[1], ask[2]) for step in steps for ask in _ASKS.finditer(step.text)]
    shape = asked[0][0] if asked else None
    runs = [(INSTANCES[each], its_mode) for each, its_mode in asked]
    runs += [(run[1], run[2]) for step in steps for run in _RUNS.finditer(step.text)]
    program = cells.get("program") or (runs[0][0] if runs else None)
    named = [match[1] for step in steps if (match := _MODE.search(step.text))]
    mode = cells.get("mode") or (named[0] if named else None)
    needs = set(runs)
    row_id = scenario
    if program and mode:
        needs.add((program, mode))
        needs |= {(program, run[1]) for step in steps for run in _CHANGED.finditer(step.text)}
        kept = [cells[name] for name in _NAMING_COLUMNS if name in cells]
        row_id = f"{scenario}[{'-'.join([program, mode, *kept])}]"
    tags = frozenset(tag["name"] for tag in pickle["tags"])
    return Row(row_id, program, mode, shape, frozenset(needs), cells, steps, line, tags)
