"""The claims of a history, compared with those of its scenario.

A claim that was cut, moved or relabelled would make a history say more than was judged.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from upheld.checks.needs import Struck
from upheld.errors import UsageProblem
from upheld.history import History
from upheld.history.events import Application, Claim
from upheld.history.reading import printable
from upheld.judging.claims import claim_of, sentences_of
from upheld.spec import catalogue
from upheld.spec.fault_families import marks_of
from upheld.spec.gherkin import Row, Step
from upheld.verdicts import Verdict

UPSTREAM = "upstream"  # the application that feeds the judged ones, about which nothing is claimed


class Compared(NamedTuple):
    """The row of a history, and what keeps its claims from proving it."""

    row: Row | None  # None if this version makes other claims there, or has no such row
    note: str = ""  # why the claims are judged as they stand; empty if they are the scenario's


@cache
def _rows() -> Mapping[str, Row]:
    """Return the rows of the specification that ships, by their ids."""
    scenarios = catalogue.load().scenarios
    return {row.id: row for scenario in scenarios for row in scenario.rows}


def struck_before(row: Row | None, sentence: str, number: int = 0) -> Struck:
    """Return the families that the marks of a row's faults may have, up to a claim.

    Args:
        row: The row; None if it is not known, so that no mark is asked for.
        sentence: The sentence of the claim.
        number: How often the sentence was judged before.
    """
    steps = row.steps if row else ()
    places = [place for place, step in enumerate(steps) if step.text == sentence]
    if not places:
        return ()
    before = steps[: places[min(number, len(places) - 1)]]
    return [families for step in before if (families := marks_of(step))]


def compared(history: History, verdict: str) -> Compared:
    """Compare the claims of a history with those of its scenario.

    Args:
        history: The history.
        verdict: The recorded verdict. Any but `upheld` may end an attempt before its last claim.

    Raises:
        UsageProblem: The claims are not those that the scenario makes; or program or mode are not
            those of the row.
    """
    begun = history.begun
    row = _rows().get(begun.scenario)
    if begun.claims is None:
        said = "no row" if row is None else _difference(history, _due(history, row), verdict)
        if not said:
            return Compared(row)
        return Compared(None, _as_it_stands(begun.scenario, row, said))
    note = ""
    if row and begun.claims != sentences_of(row):
        note = _as_it_stands(begun.scenario, row, "other claims")
        row = None
    due = _due(history, row) if row else _each(history, begun.claims)
    if said := _difference(history, due, verdict):
        raise UsageProblem(f"the history of {printable(begun.scenario)} was altered: {said}")
    if row and (said := _misfit(history, row)):
        raise UsageProblem(f"the history of {printable(begun.scenario)} was altered: {said}")
    return Compared(row, note)


class _Due(NamedTuple):
    """A claim that a scenario makes; a part that is not known is None."""

    sentence: str
    application: str | None = None
    check: str | None = None
    arguments: Mapping[str, object] | None = None


def _due(history: History, row: Row) -> list[_Due]:
    """Return the claims that a row makes of the applications of a history, in order."""
    return [claim for step in row.steps for claim in _due_of(history, step)]


def _due_of(history: History, step: Step) -> Iterator[_Due]:
    claim = claim_of(step.text)
    if claim:
        arguments = claim.arguments(step)
        names = _judged(history)[:1] if claim.is_of_all else _judged(history)
        yield from (_Due(step.text, name, claim.check, arguments) for name in names)


def _each(history: History, texts: Sequence[str]) -> list[_Due]:
    """Return claims that this version may not know, one for each text or more.

    A sentence may be judged of each application, so it is due as often as it was made in a row. A
    text has the cells of its table behind its sentence.
    """
    made = [claim.sentence for claim in history.of(Claim)]
    due = list[_Due]()
    for text in texts:
        next_made = "".join(made[len(due) : len(due) + 1])
        sentence = next_made if f"{text} ".startswith(f"{next_made} ") else text
        due.append(_Due(sentence))
        while texts.count(text) == 1 and made[len(due) : len(due) + 1] == [sentence]:
            due.append(_Due(sentence))
    return due


def _judged(history: History) -> list[str]:
    """Return the names of the applications about which something is claimed."""
    return [each.name for each in history.of(Application) if each.name != UPSTREAM]


def _difference(history: History, due: Sequence[_Due], verdict: str) -> str:
    """Return how the claims of a history differ from those due; empty if they do not."""
    made = list(history.of(Claim))
    is_ours = history.begun.names_are_ours
    for number, (claim, wanted) in enumerate(zip(made, due, strict=False), 1):
        if said := _of_one(claim, wanted, is_ours=is_ours):
            return printable(f"claim {number} {said}")
    if made[len(due) :]:
        extra = made[len(due)]
        return printable(f"claim {len(due) + 1}, “{extra.sentence}”, is none of the scenario's")
    if verdict == Verdict.UPHELD and due[len(made) :]:
        return printable(f"the claim “{due[len(made)].sentence}” is missing")
    return ""


def _of_one(claim: Claim, due: _Due, *, is_ours: bool) -> str:
    """Return how a claim differs from the one that is due."""
    if claim.sentence != due.sentence:
        return f"is “{claim.sentence}”, and the scenario has “{due.sentence}” there"
    if due.check is not None and claim.check != due.check:
        return f"asks the check {claim.check!r}, and “{due.sentence}” asks {due.check!r}"
    if due.application is not None and claim.application != due.application:
        return f"is about {claim.application!r}, and the scenario asks about {due.application!r}"
    if due.arguments is not None and not _fits(claim.arguments, due.arguments, is_ours=is_ours):
        return f"has other arguments than “{due.sentence}”: {_shown(claim.arguments)}"
    return ""


def _fits(arguments: Mapping[str, object], due: Mapping[str, object], *, is_ours: bool) -> bool:
    """Return whether arguments are those due; a foreign broker may abort a transaction later."""
    if arguments == due:
        return True
    given_ms = arguments.get("bound_ms")
    least_ms = due.get("bound_ms")
    return (
        not is_ours
        and arguments.keys() == due.keys() == {"bound_ms"}
        and isinstance(given_ms, int)
        and isinstance(least_ms, int)
        and given_ms >= least_ms
    )


def _shown(arguments: Mapping[str, object]) -> str:
    said = ", ".join(f"{name} {value!r:.40}" for name, value in arguments.items())
    return said[:200] or "none"


def _misfit(history: History, row: Row) -> str:
    """Return how the first judged application differs from the row's; empty if it does not.

    A second one may run under another mode, to be compared with the first.
    """
    for name in _judged(history)[:1]:
        each = history.application(name)
        if row.needs and (each.program, each.mode) not in row.needs:
            return printable(f"the application {name!r} runs {each.program} under {each.mode}")
    return ""


def _as_it_stands(scenario: str, row: Row | None, said: str) -> str:
    scenario = printable(scenario)
    if row is None:
        return f"this version has no row {scenario}: its claims are judged as they stand"
    if said == "other claims":
        return (
            f"this version makes other claims of {scenario} than the version that recorded it: "
            "they are judged as they stand"
        )
    return (
        f"its claims are not those that this version makes of {scenario} ({said}): another version "
        "made them, or they were cut, so they are judged as they stand"
    )
