"""The catalogue: guarantees of guarantees.toml, and the scenarios that judge them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.programs import PROGRAMS
from upheld.reading import read_toml
from upheld.spec.gherkin import Feature, Row, Scenario, read_feature

FEATURES: Final = Path(__file__).parents[1] / "features"
FILE_NAME: Final = "guarantees.toml"
EVERY_PROGRAM: Final = "all"
VERSION: Final = r"^\d+\.\d+\.\d+$"


class Guarantee(BaseModel):
    """One promise, in the project's own words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^(G[1-9]\d*|SLA)$")
    promise: str = Field(min_length=1)
    family: str
    programs: tuple[str, ...] = Field(min_length=1)
    parts: tuple[str, ...] = ()  # of a compound promise, which has a scenario for each
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


@dataclass(frozen=True)
class Catalogue:
    """All guarantees and all scenarios."""

    guarantees: Mapping[str, Guarantee]
    features: tuple[Feature, ...]
    scenarios: tuple[Scenario, ...]
    sources: Mapping[str, str]  # file of an article -> its title
    tags: Mapping[str, str]  # tag without @ -> what it means
    own: tuple[Path, ...] = ()  # the features of a user's own among them

    @property
    def promises(self) -> Mapping[str, str]:
        """Id of a guarantee -> its promise, in the order of the catalogue."""
        return {guarantee.id: guarantee.promise for guarantee in self.guarantees.values()}

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

    def is_newer(self, row: Row, spec: str | None) -> bool:
        """Return whether a row is newer than a version that a design pins.

        No row is, if there is no pin. A version of two parts, such as 0.4, holds all that begin
        with them.
        """
        since = self.since(row)
        if spec is None or not since:
            return False
        pin = parts_of(spec)
        return parts_of(since)[: len(pin)] > pin

    def guarantee(self, name: str) -> Guarantee:
        """Find a guarantee by its id, or by the id of one of its scenarios or rows.

        Raises:
            UsageProblem: There is no such guarantee.
        """
        if guarantee := self.guarantees.get(name.removeprefix("@").partition(".")[0]):
            return guarantee
        near = did_you_mean(name, self.guarantees)
        raise UsageProblem(f"{name} is no guarantee.{near} `upheld list` shows all of them.")


def parts_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a version of the specification."""
    return tuple(int(part) for part in version.split("."))


def load(features: Path = FEATURES) -> Catalogue:
    """Read the guarantees and every feature below a folder.

    Raises:
        UsageProblem: A file cannot be read, or breaks a rule of its format.
    """
    file = features / FILE_NAME
    tables = read_toml(file)
    sources = _texts(file, tables, "sources")
    tags = _texts(file, tables, "tags")
    guarantees = {name: _guarantee(file, name, table, sources) for name, table in tables.items()}
    for guarantee in guarantees.values():
        if guarantee.family not in tags:
            raise UsageProblem(
                f"{file}: [{guarantee.id}] is of the family {guarantee.family!r}, not one of "
                "[tags]."
            )
    read = [
        read_feature(path, path.relative_to(features).as_posix())
        for path in sorted(features.rglob("*.feature"))
    ]
    return Catalogue(
        guarantees=guarantees,
        features=tuple(each.feature for each in read),
        scenarios=tuple(scenario for each in read for scenario in each.scenarios),
        sources=sources,
        tags=tags,
    )


def _texts(file: Path, tables: dict[str, object], name: str) -> dict[str, str]:
    """Take a table of texts out of the others; it is empty if there is none."""
    table = tables.pop(name, {})
    if not isinstance(table, dict) or not all(isinstance(text, str) for text in table.values()):
        raise UsageProblem(f"{file}: [{name}] is no table of texts.")
    return table


def _guarantee(file: Path, name: str, table: object, sources: Collection[str]) -> Guarantee:
    """Read the table of one guarantee."""
    if not isinstance(table, dict):
        raise UsageProblem(f"{file}: [{name}] is no table.")
    try:
        guarantee = Guarantee.model_validate({"id": name, **table})
    except ValidationError as error:
        raise UsageProblem(f"{file}: [{name}] {_first(error)}.") from None
    if guarantee.source not in {None, *sources}:
        raise UsageProblem(f"{file}: [{name}] has a source that [sources] gives no title.")
    return guarantee


def _first(error: ValidationError) -> str:
    """Return the first thing that is wrong: the field and the rule that it breaks."""
    details = error.errors()[0]
    where = ".".join(str(part) for part in details["loc"])
    return f"{where}: {details['msg']}" if where else details["msg"].removeprefix("Value error, ")
