"""The prefix of the input that the visible outputs are of."""

from collections import defaultdict
from collections.abc import Iterable

from upheld.checks.view import NOWHERE, Output, View
from upheld.history.events import Offsets, Record


def reached(view: View) -> Offsets:
    """Return the offsets after the last input whose outcome is visible (topic-partition -> offset).

    A partition of which nothing is visible is left out.
    """
    furthest = defaultdict[str, int](int)
    for key, outputs in view.outputs.items():
        for output in outputs:
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
    return view.states[key][output.index].sources
