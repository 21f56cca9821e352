"""The strength of a verdict: its oracle, and what that could be asked.

The oracle says what is right. It is the model of a shipped program, a model that a user wrote, or
a run without a fault. That is a run of the release before, or of the application itself. A row
asks up to three questions. The *relation* is which outputs there are, and how often. The *order* is
that of the outputs of a key. The *prefix* is that outputs and committed offsets go together. An
oracle may have no answer to one of them. The *last value per key* is what is left of the relation
where only the ends of keys are known.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from upheld.checks.needs import Need
from upheld.checks.registry import ANOMALIES, BY_LAST_VALUE, NEEDS
from upheld.history import History
from upheld.history.events import Application, Claim, Committed, Record
from upheld.programs.itself import Itself, below, oracles_of
from upheld.spec.power import Power, power

Part = Literal["relation", "last value per key", "order", "prefix"]
PARTS: Final[tuple[Part, ...]] = ("relation", "last value per key", "order", "prefix")
ORACLES: Final = ("program", "model", "previous", "itself")
# The checks that compare outputs with the states below the committed offsets.
_PREFIX: Final = frozenset({"fold", "below-the-commit", "whole-or-refused", "stored-first"})
_RELATION: Final = frozenset({"lost", "duplicated", "phantom"})


class Strength(NamedTuple):
    """The oracle of a verdict, and the questions to it.

    Attributes:
        oracle: The weakest oracle of the row's applications; empty if nothing was claimed of one.
        rests_on: What was asked, and could be judged.
        lacks: What was asked, and the oracle does not know.
    """

    oracle: str = ""
    rests_on: tuple[Part, ...] = ()
    lacks: tuple[Part, ...] = ()

    def power(self, row: str) -> Power | None:
        """Return the power of a row with this oracle; None if nobody knows it."""
        by_last_value = "last value per key" in self.rests_on
        return power(row, self.oracle, by_last_value=by_last_value) if self.oracle else None


def asked(check: str) -> Iterator[Part]:
    """Go through what a check asks of an oracle."""
    anomalies = ANOMALIES.get(check, ())
    if Need.INPUT in NEEDS.get(check, ()) and _RELATION & set(anomalies):
        yield "relation"
    if "reordered" in anomalies:
        yield "order"
    if check in _PREFIX:
        yield "prefix"


def strength_of(history: History) -> Strength:
    """Return what the claims of a history rest on, so far."""
    claims = list(history.of(Claim))
    names = {claim.application for claim in claims}
    judged = [each for each in history.of(Application) if each.name in names]
    if not judged:
        return Strength()
    wanted = {part for claim in claims for part in asked(claim.check)}
    unknown = {part for each in judged for part in _unknown(history, each)}
    by_last_value = {each.name for each in judged if _is_by_last_value(history, each)}
    of_last_values = (
        claim.check in BY_LAST_VALUE
        and claim.application in by_last_value
        and any(asked(claim.check))
        for claim in claims
    )
    if any(of_last_values):
        wanted.add("last value per key")
    oracle = max((_oracle(each) for each in judged), key=ORACLES.index)
    return Strength(oracle, _sorted(wanted - unknown), _sorted(wanted & unknown))


def _sorted(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=PARTS.index))


def _oracle(application: Application) -> str:
    if application.contract is None:
        return "program"
    return "model" if application.contract.model else application.contract.compared_with


def _is_by_last_value(history: History, application: Application) -> bool:
    """Return whether an output is compared by the last value of each key."""
    return any(oracle.is_last_alone for oracle in oracles_of(history, application))


def _unknown(history: History, application: Application) -> Iterator[Part]:
    """Go through what the oracle of an application cannot say."""
    begun = history.begun
    may_lead = application.mode != "exactly_once" or begun.atomic == "shard"
    if begun.progress != "group" and may_lead:  # then every cut is some prefix
        yield "prefix"
    for oracle in oracles_of(history, application):
        answers = list(oracle.answers())
        is_in_order = answers and all(answer.is_ordered for answer in answers)
        if oracle.is_last_alone or not is_in_order:
            yield "relation"
            if not (oracle.is_last_alone and oracle.contract.increasing):
                yield "order"
        elif oracle.contract.identity is not None:
            yield "order"
        if not answers or not (oracle.is_traced or _is_cut_asked(history, application, oracle)):
            yield "prefix"


def _is_cut_asked(history: History, application: Application, oracle: Itself) -> bool:
    """Return whether the application was run on the committed input, if there is any."""
    committed = [e for e in history.of(Committed) if e.application == application.name and e.down]
    if not committed or committed[-1].offsets is None:
        return False
    inputs = [r for r in history.of(Record) if r.topic in application.topics.values()]
    cut = below(committed[-1].offsets, inputs)
    return not cut or oracle.answer_to(cut) is not None
