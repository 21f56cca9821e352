"""The families of faults that strike a row, found in its sentences.

So they are known before anything runs. A mark that a fault leaves has its family as its code. The
depths ask for each family on each program and in each mode.
"""

import re
from functools import cache
from typing import Final

from upheld.families import Family
from upheld.spec.gherkin import Row, Step

# What a line says of a fault -> its family; a line may speak of several.
SENTENCES: Final[dict[str, Family]] = {
    r"\b(the application|the relay|worker|[a-d]) is killed\b": Family.PROCESS,
    r"\bthe application is paused\b": Family.PROCESS,
    r"\b[a-d] (joins|leaves|is killed)\b": Family.MEMBERSHIP,
    r"\bworker is killed\b": Family.MEMBERSHIP,
    r"\btwo deployments run under the same ids\b": Family.MEMBERSHIP,
    r"\bthe (first|second) cluster takes over\b": Family.MEMBERSHIP,
    r"\bits next \w+": Family.REQUEST,
    r"\bthe broker (restarts after a crash|rejects|is out of its reach)\b": Family.BROKER,
    r"\bits transaction coordinator fails over\b": Family.BROKER,
    r"\bwith a leader of its outputs silent\b": Family.BROKER,
    r"\bits store is (locked|slow|down|full)\b": Family.STORE,
    r"\bits local state is wiped\b": Family.DISK,
    r"\bon an empty disk\b": Family.DISK,
    r"\bits disks (are set back|run full)\b": Family.DISK,
    r"\bthe newest file that it reads back is torn\b": Family.DISK,
    r"\bits wall clock jumps\b": Family.CLOCK,
    r"\b(republished|rehomed|aborted) records\b": Family.INPUT,
    r"\bsome records of its input cannot be read\b": Family.INPUT,
    r"\ba record (that is|with|without)\b": Family.INPUT,
    r"\bretention deletes\b": Family.INPUT,
    r"\bits input (gets twice as many partitions|topic is recreated)\b": Family.INPUT,
    r"\bthe log cleaner leaves less than half\b": Family.INPUT,
}


# The lines whose faults leave no mark: the input holds them, or the consumer group shows them.
_UNMARKED: Final = re.compile(
    r"\b[a-d] (joins|leaves)\b|\b(republished|rehomed|aborted) records\b"
    r"|\bcannot be read\b|\ba record (that is|with|without)\b"
)


@cache
def families_of(sentence: str) -> frozenset[Family]:
    """Return the families that a line speaks of; none if it makes no fault."""
    return frozenset(
        family for pattern, family in SENTENCES.items() if re.search(pattern, sentence)
    )


def families(row: Row) -> frozenset[Family]:
    """Return the families of faults that strike a row."""
    return frozenset(
        family for step in row.steps if step.type != "then" for family in families_of(step.whole)
    )


def marks_of(step: Step) -> frozenset[Family]:
    """Return the families that the mark of a step's fault may have.

    There are none if the step makes no fault, or its fault leaves no mark.
    """
    if step.type == "then" or _UNMARKED.search(step.whole):
        return frozenset()
    return families_of(step.whole)
