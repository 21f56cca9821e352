"""What a scenario can end with, and the exceptions by which a step, a fault or the supervisor says
so.
"""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from upheld.errors import Problem

ATTEMPTS = 5  # at a row whose fault missed its moment


class Verdict(StrEnum):
    """The five ends of a scenario, worst first: a scenario with several takes the first."""

    HARNESS_ERROR = "harness-error"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"
    UNSUPPORTED = "unsupported"
    UPHELD = "upheld"


class Anomaly(BaseModel):
    """One named way in which an observed history is wrong, down to the record."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    text: str
    key: str | None = None
    source: str | None = None  # the input record concerned, as topic-partition@offset
    expected: str | None = None
    got: str | None = None


_MADE_UP = {"phantom", "uncommitted-visible", "torn"}  # a value that no input gives
_UNDONE = {"resurrected", "stale-overwrite"}  # a newer result is gone again


def worst_first(anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """What no input gives before newer results that are gone again, before all else; of as bad ones
    those there are more of.
    """
    found = list(anomalies)
    total = Counter(anomaly.name for anomaly in found)
    return sorted(
        found, key=lambda a: (a.name not in _MADE_UP, a.name not in _UNDONE, -total[a.name], a.name)
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
        """A violation with a single anomaly that concerns no single record."""
        return cls([Anomaly(name=name, text=text)])


class Inconclusive(Outcome):
    """Nothing can be said: the fault left no mark, or the machine was too slow to time a design."""

    verdict = Verdict.INCONCLUSIVE


class MarkMissed(Inconclusive):
    """The fault did not happen where it was aimed; the scenario is tried again under a fresh
    application id.
    """


class NotOffered(Outcome):
    """The design, or this environment, does not offer what the scenario needs."""

    verdict = Verdict.UNSUPPORTED


class HarnessError(Outcome):
    """The judging itself failed; the text says whether the adapter or the harness is to blame."""

    verdict = Verdict.HARNESS_ERROR


class AdapterBreach(HarnessError):
    """The adapter broke the protocol with no fault made; the text teaches what was expected."""


def judged(ended: BaseException | None) -> tuple[Verdict, str, list[Anomaly]]:
    """The verdict that the end of an attempt means, its reason, and its anomalies."""
    match ended:
        case None:
            return Verdict.UPHELD, "", []
        case Violated():
            return Verdict.VIOLATED, "", ended.anomalies
        case MarkMissed():
            return Verdict.INCONCLUSIVE, f"in {ATTEMPTS} attempts: {ended}", []
        case Inconclusive() | NotOffered() | HarnessError() | Outcome():
            return ended.verdict, str(ended), []
        case Problem():
            return Verdict.HARNESS_ERROR, str(ended), []
        case _:
            return Verdict.HARNESS_ERROR, f"the harness failed: {type(ended).__name__}: {ended}", []
