"""The verdicts of a scenario, and the exceptions that end an attempt with one.

A step, a fault or the supervisor raises them.
"""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from upheld.errors import Problem

ATTEMPTS = 5  # at a row, if its fault missed its moment


class Verdict(StrEnum):
    """The five ends of a scenario, worst first: if a scenario has several, the worst counts."""

    HARNESS_ERROR = "harness-error"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"
    UNSUPPORTED = "unsupported"
    UPHELD = "upheld"


class Anomaly(BaseModel):
    """One named way in which an observed history is wrong, with the record that shows it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    text: str
    key: str | None = None
    source: str | None = None  # the input record concerned, as topic-partition@offset
    expected: str | None = None
    got: str | None = None


_FABRICATED = {"phantom", "uncommitted-visible", "torn"}  # a value that no input gives
_UNDONE = {"resurrected", "stale-overwrite"}  # a newer result is gone again


def worst_first(anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """Sort by severity: fabricated values, then lost updates, then the rest.

    Within a class the most frequent come first.
    """
    found = list(anomalies)
    total = Counter(anomaly.name for anomaly in found)
    return sorted(
        found,
        key=lambda a: (a.name not in _FABRICATED, a.name not in _UNDONE, -total[a.name], a.name),
    )


class Outcome(Exception):
    """The end of a scenario other than upheld."""

    verdict: Verdict


class Violated(Outcome):
    """The guarantee did not hold; carries the anomalies, at least one."""

    verdict = Verdict.VIOLATED

    def __init__(self, anomalies: list[Anomaly]) -> None:
        super().__init__("\n".join(f"{a.name}: {a.text}" for a in anomalies[:5]))
        self.anomalies = anomalies

    @classmethod
    def one(cls, name: str, text: str) -> "Violated":
        """Return a violation with one anomaly that concerns no single record."""
        return cls([Anomaly(name=name, text=text)])


class Inconclusive(Outcome):
    """Nothing is proved: the fault left no mark, or the machine was too slow to time a design."""

    verdict = Verdict.INCONCLUSIVE


class MarkMissed(Inconclusive):
    """The fault missed its moment; the scenario is tried again with a fresh application id."""


class NotOffered(Outcome):
    """The design, or this environment, does not offer what the scenario needs."""

    verdict = Verdict.UNSUPPORTED


class HarnessError(Outcome):
    """The judging itself failed; the text says whether adapter or harness is to blame."""

    verdict = Verdict.HARNESS_ERROR


class AdapterBreach(HarnessError):
    """The adapter broke the protocol without a fault; the text says what was expected."""


class End(NamedTuple):
    """The end of an attempt: its verdict, the reason, and the anomalies."""

    verdict: Verdict
    reason: str
    anomalies: list[Anomaly]


def judged(ended: BaseException | None) -> End:
    """Return the verdict that the end of an attempt means.

    Args:
        ended: The exception that ended it; None if it came to its end.
    """
    match ended:
        case None:
            return End(Verdict.UPHELD, "", [])
        case Violated():
            return End(Verdict.VIOLATED, "", ended.anomalies)
        case MarkMissed():
            return End(Verdict.INCONCLUSIVE, f"in {ATTEMPTS} attempts: {ended}", [])
        case Inconclusive() | NotOffered() | HarnessError() | Outcome():
            return End(ended.verdict, str(ended), [])
        case Problem():
            return End(Verdict.HARNESS_ERROR, str(ended), [])
        case _:
            reason = f"the harness failed: {type(ended).__name__}: {ended}"
            return End(Verdict.HARNESS_ERROR, reason, [])
