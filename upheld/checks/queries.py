"""Checks of queries: answers are committed, whole, and never older than before.

They are there all the time.
"""

from collections.abc import Iterator

from upheld.checks.merged import is_ahead
from upheld.checks.registry import NO_STATE, OUTPUTS, check
from upheld.checks.view import View, show, text, view_of
from upheld.history import History
from upheld.history.events import Answer, Instance, Record
from upheld.programs import Diagnosis, Progress, Unreadable, Value
from upheld.verdicts import Anomaly, Inconclusive, NotOffered


@check(
    "answers",
    anomalies=("uncommitted-visible", "behind-commit", "reordered", *NO_STATE),
    needs=OUTPUTS,
)
def answers(history: History, application: str) -> list[Anomaly]:
    """Check that every answer is a row that was visible by then (G16).

    It is not older than the same instance's answer before, nor than the row that was visible when
    the instance began.
    """
    view = view_of(history, application)
    given = _given(history, application)
    found = list(view.foreign)
    said_before: dict[tuple[str, bytes], Progress] = {}
    visible: dict[bytes, Progress] = {}  # as the history goes on
    at_start: dict[str, dict[bytes, Progress]] = {}
    outputs = {id(o.record): o for each in view.outputs.values() for o in each if not o.anomaly}
    for event in history.events:
        if isinstance(event, Record) and (output := outputs.get(id(event))):
            visible[event.key or b""] = output.progress
        elif (
            isinstance(event, Instance)
            and event.application == application
            and event.event == "started"
        ):
            at_start[event.name] = dict(visible)
            said_before = {
                (name, key): said for (name, key), said in said_before.items() if name != event.name
            }
        elif isinstance(event, Answer) and event.application == application and event.ready:
            progress = _progress(view, event)
            if isinstance(progress, Anomaly):
                found.append(progress)
                continue
            shown = (
                f"{event.name} answered {text(event.key)} with {_shown(event)} at {event.at_ms} ms"
            )
            due = at_start.get(event.name, {}).get(event.key)
            before = said_before.get((event.name, event.key))
            if due and not is_ahead(progress, due):
                said = (
                    f"{shown}, which holds {progress} records of its topics; {due} were visible "
                    "when it began"
                )
                found.append(view.anomaly("behind-commit", said, event.key))
            elif before and not is_ahead(progress, before):
                said = (
                    f"{shown}, which holds {progress} records of its topics; it had answered with "
                    f"{before} before"
                )
                found.append(view.anomaly("reordered", said, event.key))
            said_before[event.name, event.key] = progress
    if not found and not any(answer.ready and at_start.get(answer.name) for answer in given):
        raise Inconclusive(
            "nobody answered who began when rows were visible, so none could be missing"
        )
    return found


@check(
    "committed-answers",
    anomalies=("uncommitted-visible",),
    needs=OUTPUTS,
)
def committed_answers(history: History, application: str) -> list[Anomaly]:
    """Check that no answer holds more than readers of committed data saw (G53).

    Inconclusive if no answer ever changed.
    """
    view = view_of(history, application)
    given = _given(history, application)
    ready = [answer for answer in given if answer.ready]
    judged = (_progress(view, answer) for answer in ready)
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
)
def answered(history: History, application: str) -> list[Anomaly]:
    """Check that the last answer for every key is its last visible row (G61).

    Each of the running instances has to give it. An instance may say between that it is not ready:
    its last row counts. ``stuck``: since its start it was never ready.
    """
    view = view_of(history, application)
    found = list[Anomaly]()
    asked = _asked(history, application)
    if missing := view.states.keys() - {key for _, key in asked}:
        raise Inconclusive(f"nobody was asked for {text(min(missing))}")
    for (name, key), answer in asked.items():
        if answer is None:
            said = f"{name} was asked for {text(key)}, and was never ready"
            found.append(view.anomaly("stuck", said, key))
            continue
        rows = [o.record for o in view.outputs.get(key, [])]
        due = view.content(rows[-1]) if rows else None
        if _value(view, answer) != due:
            said = f"{name} answers {text(key)} with {_shown(answer)}, and its last visible row is "
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


def _value(view: View, answer: Answer) -> Value | None:
    """Return the row of an answer; None if the answer is that there is none.

    A row that breaks the contract says so in its place.
    """
    assert view.program.stored_value
    try:
        return (
            None
            if answer.value is None
            else view.program.stored_value(text(answer.key), answer.value)
        )
    except Unreadable as error:
        return (error.why,)


def _shown(answer: Answer) -> str:
    return "nothing" if answer.value is None else answer.value[:200]


def _progress(view: View, answer: Answer) -> Progress | Anomaly:
    """Return how many of its key's records an answer holds.

    An answer that is no row, or was not visible yet, is an anomaly.
    """
    assert view.merged
    value = _value(view, answer)
    if value is None:
        return tuple(0 for _ in view.merged.whole(answer.key))
    shown = f"{answer.name} answered {text(answer.key)} with {_shown(answer)} at {answer.at_ms} ms"
    progress = (
        view.merged.progress(answer.key, value)
        if len(value) > 1
        else Diagnosis("phantom", str(value[0]))
    )
    if isinstance(progress, Diagnosis):
        return view.anomaly(progress.name, f"{shown}: {progress.why}", answer.key)
    if not any(_is_seen(answer, record) for record in _rows(view, answer.key, value)):
        return view.anomaly(
            "uncommitted-visible",
            f"{shown}, which no reader of committed data saw then",
            answer.key,
        )
    return progress


def _rows(view: View, key: bytes, value: Value) -> Iterator[Record]:
    """Go through the visible rows with this value."""
    for output in view.outputs.get(key, []):
        if not output.anomaly and view.program.value_of(output.record) == value:
            yield output.record


def _is_seen(answer: Answer, record: Record) -> bool:
    return record.offset < answer.stable.get(f"{record.topic}-{record.partition}", 0)
