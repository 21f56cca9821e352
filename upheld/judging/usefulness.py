"""Warnings of upheld rows that show little, by fault or by input."""

from collections.abc import Iterator
from typing import Final

from upheld.history import History, events
from upheld.programs import DEAD_LETTERS

NONE_SET_ASIDE: Final = "no record was set aside, so nothing shows what becomes of one"


def warnings(history: History) -> Iterator[str]:
    """Go through the reasons why an upheld row shows less than it says."""
    yield from _none_set_aside(history)
    yield from _struck_before_its_work(history)


def _none_set_aside(history: History) -> Iterator[str]:
    """Look for a claim on dead letters that came upon none."""
    claims = history.of(events.Claim)
    for name in sorted({each.application for each in claims if each.check == "dead-letters"}):
        topic = history.application(name).topics.get(DEAD_LETTERS)
        if not any(record.topic == topic for record in history.of(events.Record)):
            yield NONE_SET_ASIDE


def _struck_before_its_work(history: History) -> Iterator[str]:
    """Look for a kill of an instance that had not been ready since it started."""
    is_ready = dict[tuple[str, str], bool]()
    for event in history.of(events.Instance):
        instance = (event.application, event.name)
        match event.event:
            case "started":
                is_ready[instance] = False
            case "ready" | "standing-by" | "active":
                is_ready[instance] = True
            case "killed" if not is_ready.get(instance, True):
                yield (
                    f"{event.name} was killed before it was ready: the fault struck its start, "
                    "and not its work"
                )
