"""Judge a recorded history again, with no broker.

Each of its claims is judged on the history as it was when the claim was made.
"""

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

from upheld.checks import CHECKS
from upheld.checks.needs import Struck
from upheld.checks.registry import demand
from upheld.checks.strength import strength_of
from upheld.errors import ExitCode, UsageProblem
from upheld.history import History, events
from upheld.history.narrowed import narrowed
from upheld.history.reading import recording
from upheld.judging.evidence import illustrate
from upheld.judging.report import demand_reported
from upheld.judging.scenario import Compared, compared, struck_before
from upheld.programs import Unreadable
from upheld.programs.modelled import demand_model
from upheld.report import RowResult, card, exit_code, versions
from upheld.spec.gherkin import Row
from upheld.verdicts import Anomaly, Inconclusive, Judged, NotOffered, Verdict, worst_first

# A recorded verdict and that of the claims judged again: here the latter stands.
UNDONE = (Verdict.UNSUPPORTED, Verdict.INCONCLUSIVE)
SHRUNK_S = 5.0  # longer than in a run, where the next row waits
NO_DIGEST = "it has no digest: it is judged as it stands"
# What a model or a check raises if a history holds less, or something else, than a run records.
UNFIT = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
    Unreadable,
)


class Judgement(BaseModel):
    """The result of judging a recorded history again."""

    history: str
    scenario: str
    design: str
    recorded: str
    verdict: Verdict
    anomalies: list[Anomaly]
    claims: int
    notes: list[str]  # why an upheld history proves nothing; none if it proves what it says
    text: str
    exit_code: int


class ClaimsJudged(NamedTuple):
    """The verdict of a history's claims, and how many of them it took."""

    found: Judged
    claims: int
    is_decided: bool  # by one of the claims, so that the recorded end does not count


def judge(path: Path, drawing: Path | None = None, models: Sequence[Path] = ()) -> Judgement:
    """Judge every claim of a recorded history.

    An end without a claim (stuck, a breach) stands as it was recorded. A history whose lines or
    claims may not be those of its run is inconclusive at best.

    Args:
        path: The history.
        drawing: Where to write its timeline as SVG; nowhere if it is None.
        models: The files of models that were loaded for it, which its card names.

    Raises:
        UsageProblem: The file is no whole history, was altered, or holds no claim and no end to
            stand on; or its model is not known, or the drawing cannot be written.
    """
    read = recording(path)
    demand_reported(path, read.sha256)
    history = read.history
    _demand_model(path, history)
    begun = history.begun
    ended = next(history.of(events.Ended))
    scenario = _compared(path, history, ended.verdict)
    notes = [note for note in ("" if read.has_digest else NO_DIGEST, scenario.note) if note]
    judged = _judge_claims(path, history, scenario.row)
    found = judged.found if judged.is_decided else _as_recorded(path, ended, judged)
    result = _result(history, ended, found)
    if found.anomalies or drawing:
        _illustrate(history, result, path, drawing)
    text = f"{found.verdict}  {begun.scenario}  {begun.design}  ({judged.claims} claims)"
    if found.verdict not in {Verdict.UPHELD, Verdict.UNSUPPORTED}:
        named = [part for file in models for part in ("--model", str(file))]
        text = card(result, shlex.join(["upheld", "judge", *named, str(path)]))
    elif result.narrowed:
        text += f"\n  {versions(result)}"
    text += "".join(f"\n  {note}" for note in notes)
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
        notes=notes,
        text=text,
        exit_code=_exit_code(result, notes),
    )


def _exit_code(result: RowResult, notes: list[str]) -> int:
    """Return the exit code; a green one turns inconclusive if there is a note."""
    code = exit_code([result], 1)
    is_green = code in {ExitCode.UPHELD, ExitCode.NOTHING_JUDGED}
    return ExitCode.INCONCLUSIVE if notes and is_green else code


def _demand_model(path: Path, history: History) -> None:
    try:
        demand_model(history)
    except UsageProblem as problem:
        raise UsageProblem(f"{path}: {problem}") from None


def _compared(path: Path, history: History, verdict: str) -> Compared:
    try:
        return compared(history, verdict)
    except UsageProblem as problem:
        raise UsageProblem(f"{path}: {problem}") from None


def _judge_claims(path: Path, history: History, row: Row | None) -> ClaimsJudged:
    """Judge the claims in order, until one is violated.

    One that cannot be judged leaves the others to be judged. Of those the first inconclusive one
    decides, if no claim is violated.

    The row says which faults were made by then; None asks for no marks of them.
    """
    found = Judged(Verdict.UPHELD)
    is_proved = True  # the last claim
    claims = 0
    made = Counter[tuple[str, str]]()
    for count, event in enumerate(history.events):
        if not isinstance(event, events.Claim):
            continue
        claims += 1
        struck = struck_before(row, event.sentence, made[event.sentence, event.application])
        made[event.sentence, event.application] += 1
        is_proved = False
        try:
            anomalies = _again(path, event, history.upto(count), struck)
        except (NotOffered, Inconclusive) as error:
            if found.verdict is not Verdict.INCONCLUSIVE:
                found = Judged(error.verdict, error.code, str(error))
            continue
        if anomalies:
            found = found._replace(verdict=Verdict.VIOLATED, anomalies=tuple(anomalies))
            return ClaimsJudged(found, claims, is_decided=True)
        is_proved = True
    is_decided = found.verdict is Verdict.INCONCLUSIVE and not is_proved
    return ClaimsJudged(found, claims, is_decided=is_decided)


def _as_recorded(path: Path, ended: events.Ended, judged: ClaimsJudged) -> Judged:
    """Return the recorded end.

    Before, between or after claims, the record is the evidence.
    """
    is_undone = (ended.verdict, judged.found.verdict) == UNDONE
    if is_undone or ended.verdict in {Verdict.UPHELD, judged.found.verdict}:
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
    rests = strength_of(history)
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
        narrowed=narrowed(history),
        oracle=rests.oracle,
        rests_on=list(rests.rests_on),
        lacks=list(rests.lacks),
        power=rests.power(begun.scenario),
        marks=[m.model_dump(exclude={"kind", "logs"}) for m in history.of(events.Mark)],
        seconds=ended.seconds,
    )


def _illustrate(history: History, result: RowResult, path: Path, drawing: Path | None) -> None:
    try:
        illustrate(history, result, path, drawing, SHRUNK_S)
    except OSError as error:
        raise UsageProblem(f"{drawing} cannot be written: {error.strerror}") from None
    except UNFIT as error:
        raise UsageProblem(
            f"{path} cannot be drawn ({error!r:.200}); it was edited, or is of another version"
        ) from None


def _again(path: Path, claim: events.Claim, history: History, struck: Struck) -> list[Anomaly]:
    """Judge a claim on the history before it, worst anomaly first.

    Raises:
        Inconclusive: The history lacks what the check must have seen.
        UsageProblem: There is no such check, or it cannot judge what the history holds.
    """
    if claim.check not in CHECKS:
        raise UsageProblem(
            f"{path}: there is no check {claim.check!r}; the history is of another version"
        )
    try:
        demand(claim.check, history, claim.application, struck)
        return worst_first(CHECKS[claim.check](history, claim.application, **claim.arguments))
    except UNFIT as error:
        said = (
            f"{path}: the claim {claim.check!r} cannot be judged on what the history holds before "
            f"it ({error!r:.200});"
        )
        raise UsageProblem(f"{said} it was edited, or is of another version") from None
