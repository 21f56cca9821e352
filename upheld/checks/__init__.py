"""Checks: pure functions from a history to the anomalies in it. No broker, no clock, no design.

A check takes the history as it was when the feature asked, and the application that the sentence is about; it returns
anomalies, or an empty list. What is legal depends on the mode, and each rule says why.
"""

from collections.abc import Callable

from upheld.checks.dead_letters import set_aside
from upheld.checks.delivery import (
    available,
    below_the_commit,
    fold,
    once,
    paced,
    promptly,
    recovered,
    relation,
    whole,
)
from upheld.checks.effects import told
from upheld.checks.fencing import handed_over, noticed, owners, released, silent
from upheld.checks.flush import bounded, filled, in_time
from upheld.checks.joins import forgotten, named, refused_or_right, result
from upheld.checks.lag import caught_up, file_named, gap_named, lag
from upheld.checks.lineage import preserved
from upheld.checks.merged import with_names
from upheld.checks.queries import answered, answers, committed_answers, online
from upheld.checks.side_effects import footprint, no_topics, same_rows, side_effects
from upheld.checks.stores import contained, stored, stored_first, throttled
from upheld.verdicts import Anomaly

Check = Callable[..., list[Anomaly]]  # (history, application name, the claim's own arguments)

CHECKS: dict[str, Check] = {
    "relation": relation,
    "fold": fold,
    "whole": whole,
    "promptly": promptly,
    "recovered": recovered,
    "available": available,
    "once": once,
    "paced": paced,
    "below-the-commit": below_the_commit,
    "silent": silent,
    "released": released,
    "owners": owners,
    "noticed": noticed,
    "handed-over": handed_over,
    "preserved": preserved,
    "same-rows": same_rows,
    "side-effects": side_effects,
    "filled": filled,
    "in-time": in_time,
    "bounded": bounded,
    "no-topics": no_topics,
    "result": result,
    "refused-or-right": refused_or_right,
    "named": named,
    "forgotten": forgotten,
    "stored": stored,
    "stored-first": stored_first,
    "contained": contained,
    "throttled": throttled,
    "with-names": with_names,
    "footprint": footprint,
    "answers": answers,
    "committed-answers": committed_answers,
    "answered": answered,
    "online": online,
    "lag": lag,
    "caught-up": caught_up,
    "gap-named": gap_named,
    "file-named": file_named,
    "told": told,
    "dead-letters": set_aside,
}
_NO_STATE = ("phantom", "torn", "uncommitted-visible", "duplicated", "lost")  # what a value that no fold gives can be
_RELATION = (
    "lost",
    "duplicated",
    "reordered",
    "stale-overwrite",
    "resurrected",
    "torn",
    "uncommitted-visible",
    "phantom",
)
# The anomalies that each check can name, for `explain` and for the catalogue of wrong designs.
ANOMALIES: dict[str, tuple[str, ...]] = {
    "relation": _RELATION,
    "fold": ("ahead-of-commit", "behind-commit", "stale-overwrite", "resurrected", *_NO_STATE),
    "whole": ("torn",),
    "promptly": ("late", *_NO_STATE),
    "recovered": ("late", *_NO_STATE),
    "available": ("late", *_NO_STATE),
    "once": ("duplicated",),
    "paced": ("early", *_NO_STATE),
    "below-the-commit": ("duplicated",),
    "silent": ("fenced-but-emitting",),
    "released": ("stuck",),
    "owners": ("fenced-but-emitting", *_NO_STATE),
    "noticed": ("fenced-but-emitting",),
    "handed-over": ("fenced-but-emitting", *_NO_STATE),
    "preserved": _NO_STATE,
    "same-rows": ("phantom", "lost"),
    "side-effects": ("leaked-topic",),
    "filled": ("late", "early", *_NO_STATE),
    "in-time": ("late", *_NO_STATE),
    "bounded": ("late", "early", *_NO_STATE),
    "no-topics": ("leaked-topic",),
    "result": ("lost", *_NO_STATE),
    "refused-or-right": _RELATION,
    "named": ("stuck", *_NO_STATE),
    "forgotten": ("unbounded",),
    "stored": ("late", *_NO_STATE),
    "stored-first": ("behind-commit", *_NO_STATE),
    "contained": ("unbounded",),
    "throttled": ("early", *_NO_STATE),
    "with-names": ("lost", *_NO_STATE),
    "footprint": ("leaked-topic",),
    "answers": ("uncommitted-visible", "behind-commit", "reordered", *_NO_STATE),
    "committed-answers": ("uncommitted-visible",),
    "answered": ("behind-commit", *_NO_STATE),
    "online": ("stuck",),
    "lag": ("misstated", *_NO_STATE),
    "caught-up": ("stuck", *_NO_STATE),
    "gap-named": ("lost", "stuck"),
    "file-named": ("stuck", *_NO_STATE),
    "told": _NO_STATE,
    "dead-letters": ("lost", "duplicated", "phantom", "uncommitted-visible", "ahead-of-commit"),
}
