"""Faults and waiting keys in the log of an application that does not go on.

No sentence claims this. An attempt that ends as stuck asks for it, so that a worse fault is named,
or the key that waits.
"""

from collections.abc import Iterator
from typing import NamedTuple

from upheld.checks.delivery import cut, so_far
from upheld.checks.prefix import reached
from upheld.checks.view import Output, View, show, text, untraced, view_of
from upheld.history import History
from upheld.history.events import Offsets
from upheld.history.outputs import by_output
from upheld.programs import State
from upheld.verdicts import Anomaly


class Due(NamedTuple):
    """A state of a key that is not visible, and what is visible of the key instead."""

    key: bytes
    state: State
    last: Output | None

    @property
    def place(self) -> tuple[int, bytes]:
        """The place of the key among others, by the input that it waits for."""
        return self.state.source.offset, self.key


def worse(history: History, application: str, committed: Offsets | None) -> list[Anomaly]:
    """Return what is wrong already, whatever the application would still write.

    Args:
        history: The history, with all of the input and the visible outputs.
        application: The application's name.
        committed: Its committed offsets, if they say that outputs are done to there, and if no
            transaction is open. Then an output below them never comes.
    """
    histories = by_output(history, application)
    return [a for each in histories for a in _worse(each, application, committed)]


def _worse(history: History, application: str, committed: Offsets | None) -> list[Anomaly]:
    found = so_far(history, application)
    view = view_of(history, application)
    is_unknown = (
        view.merged or view.interleaved is not None or view.program.holds_back or untraced(view)
    )
    if committed is None or is_unknown:
        return found
    return [*found, *_never_came(view, committed, "the group has committed {at}")]


def passed_over(history: History, application: str) -> list[Anomaly]:
    """Return the lost keys of an application without an adapter that does not go on.

    Their outputs are missing, though later input of the same partition has come out. An application
    reads a partition in order, so it has passed over theirs. Nothing is known of an application
    whose outputs do not say which input they are of.

    Args:
        history: The history, with all of the input and the visible outputs.
        application: The application's name.
    """
    views = (view_of(each, application) for each in by_output(history, application))
    return [anomaly for view in views for anomaly in _passed_over(view)]


def _passed_over(view: View) -> Iterator[Anomaly]:
    if view.interleaved is not None:  # keys of several inputs wait for any of them
        return
    if view.application.contract and view.states and not untraced(view):
        yield from _never_came(view, reached(view), "outputs of later input than {at} are visible")


def _never_came(view: View, offsets: Offsets, why: str) -> Iterator[Anomaly]:
    """Go through the keys that show no state which they have to show at some offsets."""
    for key, states in view.states.items():
        last = _last(view, key)
        want = cut(offsets, states)
        if want and not any(view.shows(last, state) for state in states[want - 1 :]):
            due = states[want - 1]
            said = (
                f"{text(key)} shows {_shown(view, last)}, and not {show(due.value)}: "
                f"{why.format(at=due.source.at)}"
            )
            yield view.anomaly("lost", said, key, due, last.record if last else None)


def stuck_at(history: History, application: str, said: str) -> Anomaly | None:
    """Return the anomaly of a key whose last state is not visible; None if each is.

    The key is the one that waits for the earliest input.

    Args:
        history: The history, with all of the input and the visible outputs.
        application: The application's name.
        said: How the harness saw that the application does not go on.
    """
    views = [view_of(each, application) for each in by_output(history, application)]
    waiting = [(due, view) for view in views if (due := _first_due(view))]
    if not waiting:
        return None
    due, view = min(waiting, key=lambda each: each[0].place)
    what = f"{text(due.key)} shows {_shown(view, due.last)}, and {show(due.state.value)} is due"
    got = due.last.record if due.last else None
    return view.anomaly("stuck", f"{said}; {what}", due.key, due.state, got)


def behind(committed: Offsets, ends: Offsets) -> str:
    """Return the partitions whose committed offset is below the visible input."""
    places = [place for place in sorted(ends) if committed.get(place, 0) < ends[place]]
    return ", ".join(f"{place} at {committed.get(place, 0)} of {ends[place]}" for place in places)


def _first_due(view: View) -> Due | None:
    """Return the key that waits for the earliest input."""
    waiting = [
        Due(key, states[-1], last)
        for stage in view.stages
        for key, states in stage.states.items()
        if not stage.shows(last := _last(stage, key), states[-1])
    ]
    return min(waiting, key=lambda due: due.place, default=None)


def _last(view: View, key: bytes) -> Output | None:
    outputs = view.outputs.get(key, [])
    return outputs[-1] if outputs else None


def _shown(view: View, last: Output | None) -> str:
    return "nothing" if last is None else show(view.content(last.record))
