"""Checks of queries: answers are committed, whole, and never older than before.

They are there all the time.
"""

from upheld.checks.merged import is_ahead
from upheld.checks.registry import NO_STATE, OUTPUTS, check
from upheld.checks.tables import Table, shown, table_of
from upheld.checks.view import View, show, text, view_of
from upheld.history import History
from upheld.history.events import Answer, AnyEvent, Instance, Notice, Record
from upheld.programs import Progress
from upheld.verdicts import Anomaly, Inconclusive, NotOffered


@check(
    "answers",
    anomalies=("uncommitted-visible", "behind-commit", "reordered", *NO_STATE),
    needs=OUTPUTS,
    by_last_value=True,
)
def answers(history: History, application: str) -> list[Anomaly]:
    """Check that every answer is a row that was visible by then (G16).

    It is not older than the same instance's answer before, nor than the row that was visible when
    the instance began.
    """
    view = view_of(history, application)
    given = _given(history, application)
    table = table_of(view)
    _demand_order(view)
    found = list(view.foreign)
    said_before: dict[tuple[str, bytes], Progress] = {}
    visible: dict[bytes, Progress] = {}  # as the history goes on
    at_start: dict[str, dict[bytes, Progress]] = {}
    rows = {id(output.record): progress for output, progress in table.progressed()}
    for event in history.events:
        if isinstance(event, Record) and (row := rows.get(id(event))):
            visible[event.key or b""] = row
        elif name := _begun(view, event):
            at_start[name] = dict(visible)
            said_before = {(of, key): said for (of, key), said in said_before.items() if of != name}
        elif isinstance(event, Answer) and event.application == application and event.ready:
            progress = table.progress(event)
            if isinstance(progress, Anomaly):
                found.append(progress)
                continue
            due = at_start.get(event.name, {}).get(event.key)
            before = said_before.get((event.name, event.key))
            said = f"{table.said(event)}, which {table.holds(progress)}"
            if due and _is_older(table, event.key, progress, due):
                said += f"; {table.were_visible(due)} when it began"
                found.append(view.anomaly("behind-commit", said, event.key))
            elif before and _is_older(table, event.key, progress, before):
                said += f"; it had answered with {table.name(before)} before"
                found.append(view.anomaly("reordered", said, event.key))
            said_before[event.name, event.key] = progress
    if not found and not any(answer.ready and at_start.get(answer.name) for answer in given):
        raise Inconclusive(
            "nobody answered who began when rows were visible, so none could be missing"
        )
    return found


def _demand_order(view: View) -> None:
    """Demand that it is known which of two outputs is the older one.

    Raises:
        NotOffered: Outputs may come again, and they may be others then.
    """
    if view.program.is_last_alone and not view.exactly_once:
        raise NotOffered(
            "its keys have different numbers of outputs, and some may come again after a fault, so "
            "that nobody can say which answers are older"
        )


def _begun(view: View, event: AnyEvent) -> str:
    """Return the name of the instance that an event begins, if it begins one.

    An application without an adapter begins anew if its supervisor starts it again.
    """
    name = view.application.name
    if isinstance(event, Instance) and (event.application, event.event) == (name, "started"):
        return event.name
    if isinstance(event, Notice) and (event.application, event.code) == (name, "recovered"):
        return event.name if view.application.contract else ""
    return ""


def _is_older(table: Table, key: bytes, progress: Progress, other: Progress) -> bool:
    """Return whether an answer is older than what was seen before, and may not be."""
    return not is_ahead(progress, other) and not is_ahead(progress, table.least(key, other))


@check(
    "committed-answers",
    anomalies=("uncommitted-visible",),
    needs=OUTPUTS,
    by_last_value=True,
)
def committed_answers(history: History, application: str) -> list[Anomaly]:
    """Check that no answer holds more than readers of committed data saw (G53).

    Inconclusive if no answer ever changed.
    """
    view = view_of(history, application)
    given = _given(history, application)
    ready = [answer for answer in given if answer.ready]
    table = table_of(view)
    judged = (table.progress(answer) for answer in ready)
    found = [each for each in judged if isinstance(each, Anomaly)]
    if not found and len({(answer.key, answer.value) for answer in ready}) == len(
        {answer.key for answer in ready}
    ):
        raise Inconclusive("no row changed while it was asked for")
    return found


@check(
    "answered",
    anomalies=("behind-commit", "stuck", *NO_STATE),
    needs=OUTPUTS,
    by_last_value=True,
)
def answered(history: History, application: str) -> list[Anomaly]:
    """Check that the last answer for every key is its last visible row (G61).

    Each of the running instances has to give it. An instance may say between that it is not ready:
    its last row counts. ``stuck``: since its start it was never ready.
    """
    view = view_of(history, application)
    found = list[Anomaly]()
    asked = _asked(history, application)
    table = table_of(view)
    if missing := table.keys() - {key for _, key in asked}:
        raise Inconclusive(f"nobody was asked for {text(min(missing))}")
    for (name, key), answer in asked.items():
        if answer is None:
            said = f"{name} was asked for {text(key)}, and was never ready"
            found.append(view.anomaly("stuck", said, key))
            continue
        rows = [o.record for o in view.outputs.get(key, [])]
        due = table.row(rows[-1]) if rows else None
        if table.value(answer) != due:
            said = f"{name} answers {text(key)} with {shown(answer)}, and its last visible row is "
            said += f"{show(due)} at {rows[-1].at}" if due else "none"
            found.append(view.anomaly("behind-commit", said, key))
    return [*view.foreign, *found]


def _asked(history: History, application: str) -> dict[tuple[str, bytes], Answer | None]:
    """Return the last row that each running instance gave for each key since its start.

    It is None where the instance was asked, and said each time that it is not ready.
    """
    _given(history, application)
    asked: dict[tuple[str, bytes], Answer | None] = {}
    for event in history.events:
        if isinstance(event, Answer) and event.application == application:
            place = (event.name, event.key)
            asked[place] = event if event.ready else asked.get(place)
        elif (
            isinstance(event, Instance)
            and event.application == application
            and event.event in {"started", "stopped", "killed", "failed", "exited"}
        ):
            asked = {place: said for place, said in asked.items() if place[0] != event.name}
    return asked


@check(
    "online",
    anomalies=("stuck",),
    needs=OUTPUTS,
    by_last_value=True,
)
def online(history: History, application: str) -> list[Anomaly]:
    """Check that the others went on answering after an instance was killed (G16).

    Here readiness has to stay: each time that the instances are asked for a key, one of those that
    are left answers. Inconclusive if none was asked soon enough.
    """
    dead = None
    rounds = list[list[Answer]]()  # the answers of all instances to one question
    for event in history.events:
        if isinstance(event, Instance) and (event.application, event.event) == (
            application,
            "killed",
        ):
            dead = dead or event
        elif dead and isinstance(event, Answer) and event.application == application:
            if not rounds or not _is_of_round(event, rounds[-1]):
                rounds.append([])
            rounds[-1].append(event)
    if not dead or not rounds:
        _given(history, application)
        raise Inconclusive("nobody was asked after the kill")
    return [
        Anomaly(
            name="stuck",
            text=(
                f"{', '.join(answer.name for answer in answers)} could not be asked "
                f"{answers[0].at_ms - dead.at_ms} ms after another died"
            ),
            key=text(answers[0].key),
        )
        for answers in rounds
        if not any(answer.ready for answer in answers)
    ]


def _is_of_round(answer: Answer, answers: list[Answer]) -> bool:
    """Return whether an answer is another instance's to the question of these answers."""
    is_new = answer.name not in {each.name for each in answers}
    return is_new and answer.key == answers[0].key


def _given(history: History, application: str) -> list[Answer]:
    """Return the answers; raise NotOffered if there are none."""
    given = [answer for answer in history.of(Answer) if answer.application == application]
    if not given:
        raise NotOffered("the design's table cannot be asked (capability query)")
    return given
