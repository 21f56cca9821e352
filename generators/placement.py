"""Keys that lie in a chosen partition by Kafka's default partitioner.

The partition of a record is murmur2 of its key, as Java's producers have it. A design that looks
for a key by that rule finds it. Skew and empty partitions come of the choice of keys: a name gets a
suffix until it lies where it is to lie.
"""

import math
from functools import lru_cache
from itertools import count
from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF
_GROWTH: Final = 24  # 4 partitions may become 8, and 12 may become 24


def murmur2(key: bytes) -> int:
    """Return the hash of a key, as an unsigned number of 32 bits."""
    found = _SEED ^ len(key)
    whole = len(key) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        found = found * _MULTIPLIER & _MASK ^ word
    if rest := key[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * _MULTIPLIER & _MASK
    found = (found ^ found >> 13) * _MULTIPLIER & _MASK
    return found ^ found >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key among so many."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def slots_of(partitions: int) -> int:
    """Return a number of slots that the partitions divide, with room for growth.

    With so many slots, a topic of up to 4 partitions can double, and its keys are the same.
    """
    return math.lcm(partitions, _GROWTH)


@lru_cache(maxsize=1 << 16)
def placed(name: str, slot: int, slots: int) -> str:
    """Return a key that begins with a name and lies in a slot.

    Among n partitions, where n divides `slots`, the key lies in partition `slot % n`. A name has
    the same key in the same slot whenever it is asked for.
    """
    wanted = slot % slots
    keys = (f"{name}-{suffix:x}" for suffix in count())
    return next(key for key in keys if partition_of(key.encode(), slots) == wanted)
