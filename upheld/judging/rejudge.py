"""Judge a recorded history again, with no broker.

Each of its claims is judged on the history as it was when the claim was made.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

from upheld.checks import CHECKS
from upheld.errors import UsageProblem
from upheld.history import History, events, read
from upheld.judging.evidence import illustrate
from upheld.programs import Unreadable
from upheld.report import RowResult, card, exit_code
from upheld.verdicts import Anomaly, Inconclusive, Judged, NotOffered, Verdict, worst_first

SHRUNK_S = 5.0  # longer than in a run, where the next row waits


class Judgement(BaseModel):
    """The result of judging a recorded history again."""

    history: str
    scenario: str
    design: str
    recorded: str
    verdict: Verdict
    anomalies: list[Anomaly]
    claims: int
    text: str
    exit_code: int


class ClaimsJudged(NamedTuple):
    """The verdict of a history's claims, and how many of them it took."""

    found: Judged
    claims: int
    is_decided: bool  # by one of the claims, so that the recorded end does not count


def judge(path: Path, drawing: Path | None = None) -> Judgement:
    """Judge every claim of a recorded history.

    An end without a claim (stuck, a breach) stands as it was recorded.

    Args:
        path: The history.
        drawing: Where to write its timeline as SVG; nowhere if it is None.

    Raises:
        UsageProblem: The file is no whole history, or holds no claim and no end to stand on; or
            the drawing cannot be written.
    """
    history = read(path)
    begun = history.begun
    ended = next(history.of(events.Ended))
    judged = _judge_claims(path, history)
    found = judged.found if judged.is_decided else _as_recorded(path, ended, judged)
    result = _result(history, ended, found)
    if found.anomalies or drawing:
        _illustrate(history, result, path, drawing)
    text = f"{found.verdict}  {begun.scenario}  {begun.design}  ({judged.claims} claims)"
    if found.verdict not in {Verdict.UPHELD, Verdict.UNSUPPORTED}:
        text = card(result, f"upheld judge {path}")
    if found.verdict != ended.verdict:
        text += f"\n  the run itself recorded: {ended.verdict}"
    return Judgement(
        history=str(path),
        scenario=begun.scenario,
        design=begun.design,
        recorded=ended.verdict,
        verdict=found.verdict,
        anomalies=list(found.anomalies),
        claims=judged.claims,
        text=text,
        exit_code=exit_code([result], 1),
    )


def _judge_claims(path: Path, history: History) -> ClaimsJudged:
    """Judge the claims in order, until one is violated or proves nothing."""
    found = Judged(Verdict.UPHELD)
    claims = 0
    for count, event in enumerate(history.events):
        if not isinstance(event, events.Claim):
            continue
        claims += 1
        try:
            anomalies = _again(path, event, history.upto(count))
        except NotOffered as error:  # of that claim alone; a later one may still be violated
            found = Judged(error.verdict, error.code, str(error))
            continue
        except Inconclusive as error:
            found = Judged(error.verdict, error.code, str(error))
            return ClaimsJudged(found, claims, is_decided=True)
        if anomalies:
            found = found._replace(verdict=Verdict.VIOLATED, anomalies=tuple(anomalies))
            return ClaimsJudged(found, claims, is_decided=True)
    return ClaimsJudged(found, claims, is_decided=False)


def _as_recorded(path: Path, ended: events.Ended, judged: ClaimsJudged) -> Judged:
    """Return the recorded end.

    Before, between or after claims, the record is the evidence.
    """
    if ended.verdict in {Verdict.UPHELD, judged.found.verdict}:
        if not judged.claims:
            raise UsageProblem(f"{path} holds no claim, so it proves nothing")
        return judged.found
    if ended.verdict not in set(Verdict):
        raise UsageProblem(
            f"{path}: there is no verdict {ended.verdict!r}; the history is of another version"
        )
    return Judged(Verdict(ended.verdict), ended.code, ended.reason, ended.anomalies)


def _result(history: History, ended: events.Ended, found: Judged) -> RowResult:
    begun = history.begun
    return RowResult(
        design=begun.design,
        id=begun.scenario,
        guarantee=begun.scenario.partition(".")[0],
        name="; ".join(dict.fromkeys(c.sentence for c in history.of(events.Claim))),
        verdict=found.verdict,
        code=found.code,
        reason=found.reason,
        anomalies=list(found.anomalies),
        totals=Counter(a.name for a in found.anomalies),
        marks=[m.model_dump(exclude={"kind"}) for m in history.of(events.Mark)],
        seconds=ended.seconds,
    )


def _illustrate(history: History, result: RowResult, path: Path, drawing: Path | None) -> None:
    try:
        illustrate(history, result, path, drawing, SHRUNK_S)
    except OSError as error:
        raise UsageProblem(f"{drawing} cannot be written: {error.strerror}") from None


def _again(path: Path, claim: events.Claim, history: History) -> list[Anomaly]:
    """Judge a claim on the history before it, worst anomaly first."""
    if claim.check not in CHECKS:
        raise UsageProblem(
            f"{path}: there is no check {claim.check!r}; the history is of another version"
        )
    try:
        return worst_first(CHECKS[claim.check](history, claim.application, **claim.arguments))
    except (LookupError, StopIteration, TypeError, ValueError, Unreadable) as error:
        said = (
            f"{path}: the claim {claim.check!r} cannot be judged on what the history holds before "
            f"it ({error!r});"
        )
        raise UsageProblem(f"{said} it was edited, or is of another version") from None
