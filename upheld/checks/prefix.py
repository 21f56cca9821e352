"""The prefix of the input that the visible outputs are of."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from upheld.checks.view import NOWHERE, Output, View
from upheld.history import History
from upheld.history.events import Committed, Instance, Offsets, Record
from upheld.programs import Progress


class Prefix(NamedTuple):
    """The input up to some offsets, of which the visible outputs have to be the fold.

    They are committed offsets, or else those after the last input whose outcome is visible.
    """

    offsets: Offsets
    is_committed: bool

    @property
    def behind(self) -> str:
        """Return the anomaly of an output that lacks some of this input."""
        return "behind-commit" if self.is_committed else "torn"

    def says(self, want: int | Progress, have: int | Progress) -> str:
        """Return how much of a key's input is in the prefix, and how much in its output."""
        how = "the group has committed" if self.is_committed else "other outputs come after"
        return f"{how} {want} entries of it, and the visible output holds {have}"


def is_running(history: History, application: str) -> bool:
    """Return whether an instance may still work, so that no crash has cut it off."""
    lives = [life for life in history.of(Instance) if life.application == application]
    return not lives or lives[-1].event not in {"killed", "failed", "exited"}


def prefix_of(view: View, committed: Committed) -> Prefix:
    """Return the prefix that the outputs are to be the fold of.

    If no offsets say how far the outputs are, it is the shortest that they can be the fold of.
    """
    if committed.offsets is None:
        return Prefix(reached(view), is_committed=False)
    return Prefix(committed.offsets, is_committed=True)


def reached(view: View, *keys: bytes) -> Offsets:
    """Return the offsets after the last input whose outcome is visible.

    They are topic-partition -> offset. A partition of which nothing is visible is left out. If keys
    are given, only their outputs count.
    """
    furthest = defaultdict[str, int](int)
    for key in keys or view.outputs:
        for output in view.outputs.get(key, []):
            for source in _sources(view, key, output):
                place = f"{source.topic}-{source.partition}"
                furthest[place] = max(furthest[place], source.offset + 1)
    return dict(furthest)


def _sources(view: View, key: bytes, output: Output) -> Iterable[Record]:
    """Return the last input records that an output is made from."""
    if output.index == NOWHERE:
        return ()
    if view.merged:
        return view.merged.last(key, output.progress)
    if view.interleaved is not None:
        return view.interleaved.walks[key].last_records()
    return view.states[key][output.index].sources
