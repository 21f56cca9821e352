"""The families of faults that strike a row, found in its sentences.

So they are known before anything runs. A mark that a fault leaves has its family as its code. The
depths ask for each family on each program and in each mode.
"""

import re
from functools import cache
from typing import Final

from upheld.families import Family
from upheld.spec.gherkin import Row

# The words of a sentence for a fault -> its family; a sentence may speak of several.
SENTENCES: Final[dict[str, Family]] = {
    r"\b(it|the relay|worker|[a-d]) is killed\b": Family.PROCESS,
    r"\bit is paused\b": Family.PROCESS,
    r"\b[a-d] (joins|leaves|is killed)\b": Family.MEMBERSHIP,
    r"\bworker is killed\b": Family.MEMBERSHIP,
    r"\ba second (cluster|deployment)\b": Family.MEMBERSHIP,
    r"\bits next \w+": Family.REQUEST,
    r"\bthe broker (is killed|that coordinates|is out of its reach|refuses)\b": Family.BROKER,
    r"\bits store is (locked|slow|down)\b": Family.STORE,
    r"\bits local state is wiped\b": Family.DISK,
    r"\bits disks are set back\b": Family.DISK,
    r"\bits disks run full\b": Family.DISK,
    r"\bthe file that it wrote last is torn\b": Family.DISK,
    r"\bthe wall clock jumps\b": Family.CLOCK,
    r"\b(republished|moving|aborted) entries\b": Family.INPUT,
    r"\bsome between them cannot be read\b": Family.INPUT,
    r"\ba record (that is|with|without)\b": Family.INPUT,
    r"\bfalls off the log\b": Family.INPUT,
    r"\bits input (gets twice as many partitions|is deleted and made anew)\b": Family.INPUT,
    r"\buntil the cleaner has left less than half\b": Family.INPUT,
}


@cache
def families_of(sentence: str) -> frozenset[Family]:
    """Return the families that a sentence speaks of; none if it makes no fault."""
    return frozenset(
        family for pattern, family in SENTENCES.items() if re.search(pattern, sentence)
    )


def families(row: Row) -> frozenset[Family]:
    """Return the families of faults that strike a row."""
    return frozenset(
        family for step in row.steps for family in families_of(step.text) if step.type != "then"
    )
