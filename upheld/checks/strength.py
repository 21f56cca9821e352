"""The strength of a verdict: its oracle, and what that could be asked.

The oracle says what is right. It is the model of a shipped program, a model that a user wrote, or
the application itself in a run without a fault. A row asks up to three questions. The *relation* is
which outputs there are, and how often. The *order* is that of the outputs of a key. The *prefix* is
that outputs and committed offsets go together. An oracle may have no answer to one of them.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from upheld.checks.needs import Need
from upheld.checks.registry import ANOMALIES, NEEDS
from upheld.history import History
from upheld.history.events import Application, Claim
from upheld.programs.itself import Itself

Part = Literal["relation", "order", "prefix"]
PARTS: Final[tuple[Part, ...]] = ("relation", "order", "prefix")
ORACLES: Final = ("program", "model", "itself")
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
    oracle = max((_oracle(each) for each in judged), key=ORACLES.index)
    return Strength(oracle, _sorted(wanted - unknown), _sorted(wanted & unknown))


def _sorted(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=PARTS.index))


def _oracle(application: Application) -> str:
    if application.contract is None:
        return "program"
    return "model" if application.contract.model else "itself"


def _unknown(history: History, application: Application) -> Iterator[Part]:
    """Go through what the oracle of an application cannot say."""
    begun = history.begun
    may_lead = application.mode != "exactly_once" or begun.atomic == "shard"
    if begun.progress != "group" and may_lead:  # then every cut is some prefix
        yield "prefix"
    if _oracle(application) != "itself" or application.contract is None:
        return
    oracle = Itself(history, application.name, application.contract)
    answers = list(oracle.answers())
    if not answers or not all(answer.is_ordered for answer in answers):
        yield from PARTS
    elif not oracle.is_traced:
        yield "prefix"
