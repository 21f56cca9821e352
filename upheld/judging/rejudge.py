"""Judging a recorded history again, with no broker: every claim in it, on the history as it was
when it was made.
"""

from collections import Counter
from pathlib import Path

from pydantic import BaseModel

from upheld.checks import CHECKS
from upheld.errors import UsageProblem
from upheld.history import History, events, read
from upheld.judging.evidence import illustrate
from upheld.programs import Unreadable
from upheld.report import RowResult, card, exit_code
from upheld.verdicts import Anomaly, Inconclusive, Judged, NotOffered, Verdict, worst_first

SHRUNK_S = 5.0  # nobody waits for the next row


class Judgement(BaseModel):
    """What a recorded history proves."""

    history: str
    scenario: str
    design: str
    recorded: str
    verdict: Verdict
    anomalies: list[Anomaly]
    claims: int
    text: str
    exit_code: int


def judge(path: Path, drawing: Path | None = None) -> Judgement:
    """Judge every claim of a history; an end without a claim (stuck, a breach) stands as it was
    recorded.

    ``drawing``: where to put its timeline as SVG. Raises UsageProblem where the file is no whole
    history, or holds no claim and no end to stand on; or where the drawing cannot be written.
    """
    history = read(path)
    begun, ended = history.begun, next(history.of(events.Ended))
    found = Judged(Verdict.UPHELD)
    claims = 0
    for count, event in enumerate(history.events):
        if not isinstance(event, events.Claim):
            continue
        claims += 1
        try:
            anomalies = _again(path, event, history.upto(count))
        except NotOffered as error:  # that rule alone; what follows may still be violated
            found = Judged(error.verdict, error.code, str(error))
            continue
        except Inconclusive as error:
            found = Judged(error.verdict, error.code, str(error))
            break
        if anomalies:
            found = found._replace(verdict=Verdict.VIOLATED, anomalies=tuple(anomalies))
            break
    else:
        # It ended before, between or after claims: the record is the evidence.
        if ended.verdict not in {Verdict.UPHELD, found.verdict}:
            if ended.verdict not in set(Verdict):
                raise UsageProblem(
                    f"{path}: there is no verdict {ended.verdict!r}; the history is of another "
                    "version"
                )
            found = Judged(Verdict(ended.verdict), ended.code, ended.reason, ended.anomalies)
        elif not claims:
            raise UsageProblem(f"{path} holds no claim, so it proves nothing")
    result = RowResult(
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
    if found.anomalies or drawing:
        _illustrate(history, result, path, drawing)
    text = f"{found.verdict}  {begun.scenario}  {begun.design}  ({claims} claims)"
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
        claims=claims,
        text=text,
        exit_code=exit_code([result], 1),
    )


def _illustrate(history: History, result: RowResult, path: Path, drawing: Path | None) -> None:
    try:
        illustrate(history, result, path, drawing, SHRUNK_S)
    except OSError as error:
        raise UsageProblem(f"{drawing} cannot be written: {error.strerror}") from None


def _again(path: Path, claim: events.Claim, history: History) -> list[Anomaly]:
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
