"""Checks: pure functions from a history to the anomalies in it. No broker, no clock, no design.

A check takes the history as it was when the feature asked, and the application that the sentence is
about; it returns anomalies, or an empty list. What is legal depends on the mode, and each rule says
why.
"""

from upheld.checks import (
    dead_letters,
    delivery,
    effects,
    fencing,
    flush,
    joins,
    lag,
    lineage,
    merged,
    queries,
    side_effects,
    stores,
)
from upheld.checks.registry import ANOMALIES, CHECKS

# Each registers its checks when it is imported.
FAMILIES = (
    dead_letters,
    delivery,
    effects,
    fencing,
    flush,
    joins,
    lag,
    lineage,
    merged,
    queries,
    side_effects,
    stores,
)

__all__ = ["ANOMALIES", "CHECKS", "FAMILIES"]
