"""Outputs of a fold of several inputs: some interleaving has to give them."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from upheld.checks.prefix import Prefix
from upheld.checks.view import Interleaved, View, text
from upheld.programs.interleavings import TooMany, Walk
from upheld.verdicts import Anomaly

MOST_UNKNOWN: Final = 3  # keys beyond a bound, until a check gives up


def out_of_order(view: View) -> list[Anomaly]:
    """Return where an output is a state that no interleaving gives there."""
    return [anomaly for key, walk in _walks(view) for anomaly in _wrong(view, key, walk)]


def _wrong(view: View, key: bytes, walk: Walk) -> Iterator[Anomaly]:
    records = _of(view).shown[key]
    for each in walk.wrong:
        said = f"{text(key)} {each.said}"
        yield view.anomaly(each.name, said, key, each.due, records[each.number])


def wrong(view: View) -> list[Anomaly]:
    """Return what is no output of an interleaving of the whole input, or lacks one.

    Raises:
        TooMany: Nothing is found, and of a key nobody knows.
    """
    found = [*view.foreign, *out_of_order(view)]
    try:
        return found + _unfinished(view)
    except TooMany:
        if not found:
            raise
        return found


def _unfinished(view: View) -> list[Anomaly]:
    """Return the keys that do not end where some interleaving of the whole input ends."""

    def judged(key: bytes, walk: Walk) -> Iterator[Anomaly]:
        if missing := walk.missing():
            outputs = view.outputs.get(key, [])
            said = f"{text(key)} ends before {len(missing)} of its outputs"
            last = outputs[-1].record if outputs else None
            yield view.anomaly("lost", said, key, missing[-1], last)

    return _of_each(view, judged)


def cut_off(view: View, prefix: Prefix, *, may_lead: bool) -> list[Anomaly]:
    """Return where the outputs of a key are not those of the prefix in some order.

    They may be those of a longer one if they may lead.
    """
    return _of_each(view, partial(_cut_off, view, prefix, may_lead=may_lead))


def _of_each(view: View, judged: Callable[[bytes, Walk], Iterable[Anomaly]]) -> list[Anomaly]:
    """Return what is wrong with each key, those with few records first.

    Raises:
        TooMany: Nothing is, and of a key nobody knows.
    """
    found = list[Anomaly]()
    bounds = list[TooMany]()
    for key, walk in sorted(_walks(view), key=lambda each: sum(each[1].whole)):
        try:
            found += judged(key, walk)
        except TooMany as bound:
            bounds.append(TooMany(f"{text(key)}: {bound}"))
            if found or len(bounds) == MOST_UNKNOWN:  # larger keys are unknown, too
                break
    if bounds and not found:
        raise bounds[0]
    return found


def _cut_off(
    view: View, prefix: Prefix, key: bytes, walk: Walk, *, may_lead: bool
) -> Iterator[Anomaly]:
    want = walk.below(prefix.offsets)
    if walk.holds(want, or_more=may_lead):
        return
    is_ahead = not may_lead and walk.holds(want, or_more=True)
    name = "ahead-of-commit" if is_ahead else prefix.behind
    due = None if is_ahead else walk.next_due
    outputs = view.outputs.get(key, [])
    said = f"{text(key)}: {prefix.says(want, walk.progress)}"
    yield view.anomaly(name, said, key, due, outputs[-1].record if outputs else None)


def _walks(view: View) -> Iterator[tuple[bytes, Walk]]:
    """Go through the keys of which something is known."""
    found = _of(view)
    return ((key, walk) for key, walk in found.walks.items() if key not in found.undecided)


def _of(view: View) -> Interleaved:
    assert view.interleaved
    return view.interleaved
