"""The rows that several topics make together.

Each holds some number of its key's records of every topic, and never goes back.
"""

from collections.abc import Iterable
from itertools import pairwise

from upheld.checks.prefix import Prefix
from upheld.checks.registry import NO_STATE, OUTPUTS, check
from upheld.checks.view import Output, View, text, view_of
from upheld.history import History
from upheld.verdicts import Anomaly


def is_ahead(progress: Iterable[int], other: Iterable[int]) -> bool:
    """Return whether this progress holds all that the other one does."""
    return all(own >= its for own, its in zip(progress, other, strict=True))


def progressed(view: View) -> list[Anomaly]:
    """Return where a row goes back in a topic, or the last row is not complete."""
    return [*went_back(view), *_incomplete(view)]


def went_back(view: View) -> list[Anomaly]:
    """Return where a row goes back in a topic.

    Each mode allows what `relation` says. A row may come again right after itself in either mode.
    """
    found = []
    for key, states in view.states.items():
        outputs = [o for o in view.outputs.get(key, []) if not o.anomaly]
        steps_back = 0
        for before, after in pairwise(outputs):
            said = (
                f"{text(key)} holds {after.progress} records of its topics after {before.progress}"
            )
            if not is_ahead(after.progress, before.progress):
                steps_back += 1
                if view.exactly_once or steps_back > after.interruptions:
                    found.append(view.anomaly("reordered", said, key, states[-1], after.record))
    return found


def _incomplete(view: View) -> list[Anomaly]:
    """Return the keys whose last row is not complete."""
    found = []
    for key, states in view.states.items():
        outputs = [o for o in view.outputs.get(key, []) if not o.anomaly]
        if not outputs or not outputs[-1].index:
            have = outputs[-1] if outputs else None
            said = (
                f"{text(key)} ends with {have.progress if have else 'none'} of the records of its "
                "topics, not with all"
            )
            found.append(view.anomaly("lost", said, key, states[-1], have.record if have else None))
    return found


def cut_off(view: View, prefix: Prefix, *, may_lead: bool) -> list[Anomaly]:
    """Return where a key's last row breaks the prefix rule.

    It has to hold just the records of the prefix, or more if it may lead.
    """
    assert view.merged
    found = []
    due = view.merged.due
    for key, states in view.states.items():
        outputs = [o for o in view.outputs.get(key, []) if not o.anomaly]
        want = view.merged.below(key, prefix.offsets)
        have = outputs[-1].progress if outputs else (0,) * len(want)
        said = f"{text(key)}: {prefix.says(want, have)}"
        got = outputs[-1].record if outputs else None
        if not is_ahead(have[:due], want[:due]):
            found.append(view.anomaly(prefix.behind, said, key, states[-1], got))
        elif not may_lead and not is_ahead(want, have):
            found.append(view.anomaly("ahead-of-commit", said, key, states[-1], got))
    return found


@check(
    "with-names",
    anomalies=("lost", *NO_STATE),
    needs=OUTPUTS,
)
def with_names(history: History, application: str) -> list[Anomaly]:
    """Check that every key's last row is complete in all topics (G14).

    That includes the topics that only lend it what is known.
    """
    view = view_of(history, application)
    found = list[Anomaly]()
    assert view.merged
    for key, states in view.states.items():
        last = _last(view, key)
        if last is None or last.progress != view.merged.whole(key):
            said = (
                f"{text(key)} ends as a row that holds {last.progress if last else 'no'} records, "
                f"of {view.merged.whole(key)}"
            )
            found.append(view.anomaly("lost", said, key, states[-1], last.record if last else None))
    return [*view.foreign, *found]


def _last(view: View, key: bytes) -> Output | None:
    return next((o for o in reversed(view.outputs.get(key, [])) if not o.anomaly), None)
