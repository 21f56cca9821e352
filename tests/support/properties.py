"""Helpers for property-based tests of checks."""

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from upheld.checks import ANOMALIES, CHECKS
from upheld.history import History
from upheld.history.events import Claim


def claimed(history: History) -> dict[str, set[str]]:
    """Return the anomalies that each check finds at any of its claims in a history."""
    found: dict[str, set[str]] = {}
    for count, event in enumerate(history.events):
        if isinstance(event, Claim):
            anomalies = CHECKS[event.check](history.upto(count), event.application)
            found.setdefault(event.check, set()).update(anomaly.name for anomaly in anomalies)
    return found


def found(check: str, history: History) -> set[str]:
    """Return the names of the anomalies of a check, each one that it may name."""
    names = {anomaly.name for anomaly in CHECKS[check](history, "app")}

    assert names <= set(ANOMALIES[check])
    return names


def some(data: st.DataObject, candidates: list[Any]) -> Any:
    """Draw one of the candidates; a plan that has none is passed over."""
    assume(candidates)
    return data.draw(st.sampled_from(candidates))
