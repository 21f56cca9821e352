"""The meanings of names: of programs, anomalies, checks, capabilities and tags.

`upheld explain` looks names up here; guarantees and scenarios are explained by `spec.explain`. One
name may have several meanings: `lag` is a check and a capability.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from inspect import cleandoc
from typing import Final, NamedTuple, cast

from pydantic import BaseModel, ConfigDict

from upheld.checks import ANOMALIES, CHECKS
from upheld.judging.claims import CLAIMS, Claim, claims_of
from upheld.judging.prerequisites import needs_of
from upheld.programs import PROGRAMS, Program
from upheld.protocol.capabilities import Capability
from upheld.protocol.limits import Limit
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import MODES
from upheld.protocol.subject import OF_APPLICATIONS
from upheld.shapes import SHAPES, Shape
from upheld.spec.anomalies import anomalies
from upheld.spec.catalogue import EVERY_PROGRAM, Catalogue
from upheld.spec.gherkin import Scenario
from upheld.text import wrapped
from upheld.verdicts import Verdict

VERDICTS: Final[Mapping[str, str]] = {
    Verdict.HARNESS_ERROR: (
        "The judging itself failed; the reason names the adapter or the harness."
    ),
    Verdict.VIOLATED: "The guarantee did not hold; an anomaly names the record that shows it.",
    Verdict.INCONCLUSIVE: (
        "Nothing is proved: the fault left no mark, or the machine was too slow to time the design."
    ),
    Verdict.UNSUPPORTED: (
        "The row was not judged: the design does not offer what it needs, or the machine lacks it. "
        "The reason says what."
    ),
    Verdict.UPHELD: "The fault happened, and the guarantee held.",
}
SENTENCES_OF_MODES: Final[Mapping[str, str]] = {
    "at_least_once": "No record is lost, and after a fault its output may come again.",
    "exactly_once": "Each record counts once for readers of committed data, whatever dies.",
}
SENTENCES_OF_SHAPES: Final[Mapping[Shape, str]] = {
    "map": "Each output hangs on one record of the input.",
    "fold": "Each output hangs on all records of its key so far.",
    "table": "A fold whose last outputs are a table, which answers queries by key.",
    "batch": "Each output holds several records of a key, and waits for them or for a while.",
    "join": "Each output hangs on records of two topics. Scenarios name a program of the shape.",
}
SENTENCES_OF_ORACLES: Final[Mapping[str, str]] = {
    "itself": (
        "Right is what the application gives for the same input in a run without a fault. Loss, "
        "duplicates, a wrong order and state that was not restored are found; wrong logic is not, "
        "nor a fault that both runs have."
    ),
    "previous": (
        "Right is what the release before gives for the same input in a run without a fault. What "
        "the next release does otherwise is found, too, and no fault that both releases have."
    ),
}
LABEL_CHARS: Final = 15
EVERY_GUARANTEE: Final = "all"


class Meaning(BaseModel):
    """One meaning of a name.

    Attributes:
        kind: What it is the name of, such as an anomaly.
        name: The name.
        sentence: Its meaning.
        text: More of it, in paragraphs.
        facts: What else is known of it: a label, and the names that it has.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    name: str
    sentence: str
    text: str = ""
    facts: dict[str, list[str]] = {}


class Known(NamedTuple):
    """All that meanings are made of."""

    found: Catalogue
    designs: Collection[Manifest]  # those that ship


class _Kind(NamedTuple):
    """Names of one kind, and how one of them is explained."""

    names: Iterable[str]
    explain: Callable[[Known, str], Meaning]


def meanings(known: Known, name: str) -> list[Meaning]:
    """Return each meaning of a name.

    A sentence that judges has the meaning of its check.
    """
    kinds = _kinds(known.found)
    found = [kind.explain(known, name) for kind in kinds if name in set(kind.names)]
    found += [_check(known, claim.check) for claim in CLAIMS if claim.fits(name)]
    return found


def names(found: Catalogue) -> set[str]:
    """Return every name that has a meaning."""
    return {name for kind in _kinds(found) for name in kind.names}


def as_text(meaning: Meaning, width: int | None = None) -> str:
    """Set a meaning for a terminal.

    Args:
        meaning: The meaning.
        width: The columns of the terminal; without it no line is wrapped.
    """
    lines = [wrapped(f"{meaning.name} ({meaning.kind}): {meaning.sentence}", width, indent=4)]
    if meaning.text:
        lines += ["", meaning.text]
    if any(meaning.facts.values()):
        lines.append("")
    for label, named in meaning.facts.items():
        if named:
            line = f"{label + ':':<{LABEL_CHARS}}{', '.join(named)}"
            lines.append(wrapped(line, width, indent=LABEL_CHARS))
    return "\n".join(lines) + "\n"


def _kinds(found: Catalogue) -> tuple[_Kind, ...]:
    return (
        _Kind(PROGRAMS, _program),
        _Kind(anomalies(), _anomaly),
        _Kind(CHECKS, _check),
        _Kind(map(str, Capability), _capability),
        _Kind(map(str, Limit), _limit),
        _Kind(found.tags, _tag),
        _Kind(map(str, Verdict), _verdict),
        _Kind(MODES, _mode),
        _Kind(SENTENCES_OF_SHAPES, _shape),
        _Kind(SENTENCES_OF_ORACLES, _oracle),
    )


def _program(known: Known, name: str) -> Meaning:
    program = PROGRAMS[name]
    first, _, rest = cleandoc(_module_of(program)).partition("\n\n")
    guarantees = [
        guarantee.id
        for guarantee in known.found.guarantees.values()
        if name in guarantee.programs or EVERY_PROGRAM in guarantee.programs
    ]
    return Meaning(
        kind="program",
        name=name,
        sentence=" ".join(first.removeprefix(f"{name}: ").split()),
        text=rest,
        facts={
            "reads": list(program.inputs),
            "writes": [program.writes],
            "parameters": [f"{each} {usual}" for each, usual in program.parameters.items()],
            "guarantees": guarantees,
            "designs": [each.name for each in _right(known.designs) if name in each.programs],
        },
    )


def _module_of(program: Program) -> str:
    """Return the contract of a program: the docstring of the module that holds it."""
    for module in [*sys.modules.values()]:
        is_own = (getattr(module, "__name__", "") or "").startswith("upheld.programs.")
        if is_own and program in vars(module).values():
            return module.__doc__ or ""
    return ""


def _anomaly(known: Known, name: str) -> Meaning:
    checks = [check for check, found in ANOMALIES.items() if name in found]
    described = anomalies()[name]
    text = ["Usual causes:", *described.causes, "Where to look first:", *described.look]
    return Meaning(
        kind="anomaly",
        name=name,
        sentence=described.meaning,
        text="\n".join(line if line.endswith(":") else f"- {line}" for line in text),
        facts={
            "found by": checks,
            "guarantees": _guarantees(known.found, _judged_by(known.found, checks)),
            "shown by": [
                each.name for each in known.designs if each.sin and each.sin.anomaly == name
            ],
        },
    )


def _check(known: Known, name: str) -> Meaning:
    first, _, rest = cleandoc(CHECKS[name].__doc__ or "").partition("\n\n")
    return Meaning(
        kind="check",
        name=name,
        sentence=first,
        text=rest,
        facts={
            "sentences": [claim.template for claim in CLAIMS if claim.check == name],
            "finds": list(ANOMALIES[name]),
            "scenarios": [each.id for each in _judged_by(known.found, [name])],
        },
    )


def _capability(known: Known, name: str) -> Meaning:
    capability = next(each for each in Capability if each == name)
    return Meaning(
        kind="capability",
        name=name,
        sentence=f"The design {capability.sentence}.",
        facts={
            "scenarios": [each.id for each in known.found.scenarios if name in needs_of(each)],
            "designs": [each.name for each in _right(known.designs) if name in each.capabilities],
        },
    )


def _limit(known: Known, name: str) -> Meaning:
    limit = next(each for each in Limit if each == name)
    return Meaning(
        kind="limit of an engine",
        name=name,
        sentence=f"The engine cannot {limit.cannot}. It takes away that {limit.promise}.",
        facts={
            "guarantees": list(limit.guarantees),
            "documented in": [limit.link],
            "designs": [each.name for each in known.designs if name in each.cannot],
        },
    )


def _tag(known: Known, name: str) -> Meaning:
    own = [each for each in known.found.scenarios if f"@{name}" in {*each.tags, *each.example_tags}]
    family = [each.id for each in known.found.guarantees.values() if each.family == name]
    return Meaning(
        kind="family" if family else "tag",
        name=name,
        sentence=f"{known.found.tags[name][0].upper()}{known.found.tags[name][1:]}.",
        facts={"guarantees": family or _guarantees(known.found, own)},
    )


def _verdict(_: Known, name: str) -> Meaning:
    return Meaning(kind="verdict", name=name, sentence=VERDICTS[name])


def _mode(known: Known, name: str) -> Meaning:
    own = [each for each in known.found.scenarios if name in {row.mode for row in each.rows}]
    return Meaning(
        kind="mode",
        name=name,
        sentence=SENTENCES_OF_MODES[name],
        facts={"guarantees": _guarantees(known.found, own)},
    )


def _shape(known: Known, name: str) -> Meaning:
    asked = {*OF_APPLICATIONS} if name in OF_APPLICATIONS else {name}
    own = [each for each in known.found.scenarios if {row.shape for row in each.rows} & asked]
    return Meaning(
        kind="shape",
        name=name,
        sentence=SENTENCES_OF_SHAPES[cast(Shape, name)],
        facts={
            "programs": [program for program, shape in SHAPES.items() if shape == name],
            "guarantees": _guarantees(known.found, own),
        },
    )


def _oracle(_: Known, name: str) -> Meaning:
    return Meaning(kind="oracle", name=name, sentence=SENTENCES_OF_ORACLES[name])


def _right(designs: Iterable[Manifest]) -> Iterator[Manifest]:
    """Go through the designs that are not wrong on purpose."""
    return (design for design in designs if not design.sin)


def _judged_by(found: Catalogue, checks: Collection[str]) -> list[Scenario]:
    """Return the scenarios in which one of the checks judges."""
    return [
        each for each in found.scenarios if {claim.check for claim in _claims(each)} & {*checks}
    ]


def _claims(scenario: Scenario) -> Iterator[Claim]:
    return (claim for row in scenario.rows for claim in claims_of(row))


def _guarantees(found: Catalogue, scenarios: Iterable[Scenario]) -> list[str]:
    """Return the guarantees that scenarios judge, in the order of the catalogue.

    If these are all guarantees, one word says so.
    """
    judged = {scenario.guarantee for scenario in scenarios}
    own = [name for name in found.guarantees if name in judged]
    return [EVERY_GUARANTEE] if len(own) == len(found.guarantees) else own
