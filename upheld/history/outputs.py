"""The history of an application with several outputs, once for each of them.

A check compares one output with the input. So it is asked once for each output, and is given a
history in which the application has that output alone. Nothing else differs: the events are the
same, in the same order.
"""

from dataclasses import dataclass
from typing import Final

from upheld.history import History
from upheld.history.events import Answered, AnyEvent, Application, Contract

_BY_OUTPUT: Final = "by output"


@dataclass
class _Known:
    """The histories of an application's outputs, and the number of events that they hold."""

    contracts: tuple[Contract, ...]
    histories: tuple[History, ...]
    events: int = 0


def by_output(history: History, application: str) -> tuple[History, ...]:
    """Return the history once for each output of an application.

    It is the history itself if the application has one output. A history that has grown since the
    last call is not gone through again from its start.
    """
    contract = history.application(application).contract
    if contract is None or not contract.further:
        return (history,)
    known = history.derived.get((_BY_OUTPUT, application))
    if not isinstance(known, _Known):
        outputs = contract.outputs
        known = _Known(outputs, tuple(History() for _ in outputs))
        history.derived[_BY_OUTPUT, application] = known
    for event in history.events[known.events :]:
        for own, of_output in zip(known.contracts, known.histories, strict=True):
            if (seen := _seen(event, application, own)) is not None:
                of_output.add(seen)
    known.events = len(history.events)
    return known.histories


def output_of(history: History, application: str) -> str:
    """Return the role of the output that a history is of; empty without a contract."""
    contract = history.application(application).contract
    return contract.writes if contract else ""


def _seen(event: AnyEvent, application: str, own: Contract) -> AnyEvent | None:
    """Return an event as the history of one output has it; None if it is of another output."""
    if isinstance(event, Application) and event.name == application:
        return event.model_copy(update={"contract": own})
    if isinstance(event, Answered) and event.application == application:
        return event if event.output in {"", own.writes} else None
    return event
