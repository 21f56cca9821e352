"""The verdicts of a scenario, and the exceptions that end an attempt with one.

A step, a fault or the supervisor raises them.
"""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from upheld.errors import Problem
from upheld.text import encodable, visible

ATTEMPTS = 5  # at a row, if its fault missed its moment
CLIENT_ATTEMPTS = 3  # at a row, if the harness's own Kafka client failed
DISTURBED_ATTEMPTS = 3  # at a row, if others took the cores


class Verdict(StrEnum):
    """The five ends of a scenario, worst first.

    If a scenario has several, the worst counts.
    """

    HARNESS_ERROR = "harness-error"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"
    UNSUPPORTED = "unsupported"
    UPHELD = "upheld"


class Reason(StrEnum):
    """The kinds of reasons for an end that is neither upheld nor violated."""

    MARK_MISSED = "mark-missed"
    NOT_SHOWN = "not-shown"
    NOT_OFFERED = "not-offered"
    UNDECLARED = "undeclared"  # the design does not offer it, and its manifest does not say so
    CANNOT = "cannot"  # the design has declared a limit of its engine
    MACHINE_LACKS = "machine-lacks"
    ADAPTER_BREACH = "adapter-breach"
    HARNESS_FAILED = "harness-failed"
    CLIENT_FAILED = "client-failed"


_Text = Annotated[str, BeforeValidator(encodable)]  # a history has to hold it


class Anomaly(BaseModel):
    """One named way in which a history is wrong, with the record that shows it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="the name of the anomaly, such as lost")
    text: _Text = Field(description="what is wrong, in words")
    key: _Text | None = Field(default=None, description="the key that it concerns")
    source: _Text | None = Field(
        default=None, description="the input record concerned, as topic-partition@offset"
    )
    expected: _Text | None = Field(default=None, description="what was due")
    got: _Text | None = Field(default=None, description="what came")


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
    code: Reason | None = None

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(map(visible, lines)))


class Violated(Outcome):
    """The guarantee did not hold; carries the anomalies, at least one.

    Attributes:
        anomalies: The anomalies, worst first.
        is_judged: Whether the log was judged; else it may show something worse.
    """

    verdict = Verdict.VIOLATED

    def __init__(self, anomalies: list[Anomaly], *, is_judged: bool = True) -> None:
        super().__init__(*(f"{a.name}: {a.text}" for a in anomalies[:5]))
        self.anomalies = anomalies
        self.is_judged = is_judged

    @classmethod
    def one(cls, name: str, text: str) -> "Violated":
        """Return a violation with one anomaly that concerns no single record.

        The harness saw it without a look at the log.
        """
        return cls([Anomaly(name=name, text=text)], is_judged=False)


class Inconclusive(Outcome):
    """Nothing is proved.

    The fault left no mark, or the machine was too slow to time a design.
    """

    verdict = Verdict.INCONCLUSIVE
    code = Reason.NOT_SHOWN


class MarkMissed(Inconclusive):
    """The fault missed its moment.

    The scenario is tried again with a fresh application id.
    """

    code = Reason.MARK_MISSED


class Disturbed(Inconclusive):
    """Others took the cores while a promise was timed.

    The scenario is tried again when they leave them.
    """


class NotOffered(Outcome):
    """The design does not offer what the scenario needs."""

    verdict = Verdict.UNSUPPORTED
    code = Reason.NOT_OFFERED


class Undeclared(NotOffered):
    """The design turned out not to offer what the scenario needs.

    Nothing in its manifest says so. With `--strict` that fails a run.
    """

    code = Reason.UNDECLARED


class Cannot(NotOffered):
    """The design declares that its engine cannot do what the scenario needs."""

    code = Reason.CANNOT


class MachineLacks(NotOffered):
    """This machine, or the broker that was given, lacks what the scenario needs."""

    code = Reason.MACHINE_LACKS


class HarnessError(Outcome):
    """The judging itself failed; the text says if adapter or harness is to blame."""

    verdict = Verdict.HARNESS_ERROR
    code = Reason.HARNESS_FAILED


class ClientFailed(HarnessError):
    """The Kafka client of the harness itself failed.

    Nothing is known of the design. The scenario is tried again with other clients.
    """

    code = Reason.CLIENT_FAILED

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return the outcome for what a client raised."""
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return cls(
            f"the harness's own Kafka client failed ({said}), which is no fault of the design"
        )


class ProxyFailed(HarnessError):
    """The proxy before the broker failed, or could not read what passed it.

    Any other end of the attempt may be a consequence, so this end counts before all others.
    """


class AdapterBreach(HarnessError):
    """The adapter broke the protocol, and no fault was made.

    The text says what was expected.
    """

    code = Reason.ADAPTER_BREACH


class Judged(NamedTuple):
    """The verdict on an attempt."""

    verdict: Verdict
    code: Reason | None = None
    reason: str = ""
    anomalies: tuple[Anomaly, ...] = ()


def is_unforeseen(ended: BaseException) -> bool:
    """Return whether what ended an attempt is a fault of the harness itself."""
    return not isinstance(ended, Outcome | Problem)


def judged(ended: BaseException | None) -> Judged:
    """Return the verdict that the end of an attempt means, and why."""
    match ended:
        case None:
            return Judged(Verdict.UPHELD)
        case Violated():
            return Judged(Verdict.VIOLATED, anomalies=tuple(ended.anomalies))
        case MarkMissed():
            return Judged(ended.verdict, ended.code, f"in {ATTEMPTS} attempts: {ended}")
        case Outcome():
            return Judged(ended.verdict, ended.code, str(ended))
        case Problem():
            return Judged(Verdict.HARNESS_ERROR, Reason.HARNESS_FAILED, str(ended))
        case _:
            said = visible(f"the harness failed: {type(ended).__name__}: {ended}")
            return Judged(Verdict.HARNESS_ERROR, Reason.HARNESS_FAILED, said)
