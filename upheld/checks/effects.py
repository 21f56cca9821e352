"""Checks of effects outside of Kafka, beside what readers of committed data see."""

from collections import Counter

from upheld.checks.needs import Need
from upheld.checks.registry import NO_STATE, OUTPUTS, check
from upheld.checks.view import text, view_of
from upheld.history import History
from upheld.history.events import Told
from upheld.verdicts import Anomaly, Inconclusive


@check(
    "told",
    anomalies=NO_STATE,
    needs=OUTPUTS | {Need.EFFECTS},
    by_last_value=True,
)
def effects_reported(history: History, application: str) -> list[Anomaly]:
    """Check that each visible output had its effect outside at least as often (G64).

    Effects of outputs that were aborted are more than that, whether the output came again or never:
    an effect outside is at_least_once at best. Inconclusive if there were no more effects than
    outputs.
    """
    view = view_of(history, application)
    outputs = {id(o.record): o.record for each in view.outputs.values() for o in each}
    due = Counter[tuple[str | None, str | None]](
        (text(r.key or b""), None if r.value is None else text(r.value)) for r in outputs.values()
    )
    said = Counter(
        line
        for event in history.of(Told)
        if event.application == application
        for line in event.lines
    )
    found = [
        Anomaly(
            name="lost",
            key=key,
            text=f"{key}: {value} is visible {count} times and was told {said[key, value]} times",
        )
        for (key, value), count in due.items()
        if said[key, value] < count
    ]
    if not found and not said - due:
        raise Inconclusive(
            "nothing was told outside that is not visible, or twice, so this shows nothing"
        )
    return [*view.foreign, *found]
