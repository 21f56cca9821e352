"""Which check a sentence calls, and so which anomalies a scenario can name."""

from collections.abc import Iterable

from upheld.checks import ANOMALIES
from upheld.spec.catalogue import Scenario

# The sentence that makes a claim, for `explain`: the beginning of the step -> the check behind it.
CLAIMS = {
    "the visible outputs are the fold": "fold",
    "the outputs are the model's": "relation",
    "no entry is applied to some": "whole",
    "while the input rests, its outcome": "promptly",
    "no output stands there twice": "once",
    "no more transactions end": "paced",
    "nothing comes again": "below-the-commit",
    "the dead letters are": "dead-letters",
    "nothing of the paused instance": "silent",
    "no partition has two owners": "owners",
    "one of the two has stopped": "noticed",
    "only the active cluster": "handed-over",
    "the old cluster was silent": "handed-over",
    "the new cluster's first": "recovered",
    "all of the input went on": "recovered",
    "99.99 % of what arrived": "available",
    "readers wait": "released",
    "it leaves no transaction open": "released",
    "every output carries": "preserved",
    "both modes leave": "same-rows",
    "nothing else changes on the broker": "side-effects",
    "within 4 seconds every full batch": "filled",
    "no event waits longer": "in-time",
    "no batch is larger": "bounded",
    "it keeps no topic": "no-topics",
    "the result is": "result",
    "it has refused, or": "refused-or-right",
    "it stops loudly and names the record": "named",
    "it stops loudly and names where": "gap-named",
    "it has gone on, or said which file is torn": "file-named",
    "2 seconds after deletions": "forgotten",
    "while the input rests, its store": "stored",
    "its first new output": "recovered",
    "its store holds all that is committed": "stored-first",
    "while its store was away": "contained",
    "while its broker was away": "contained",
    "no account is written": "throttled",
    "the last row of every robot": "with-names",
    "beside its table it keeps": "footprint",
    "no answer is wrong": "answers",
    "no answer holds": "committed-answers",
    "for every robot it answers": "answered",
    "the others have answered": "online",
    "its lag was": "lag",
    "its committed offsets reach": "caught-up",
    "all that is visible was told": "told",
}


def anomalies_of(scenario: Scenario) -> Iterable[str]:
    """The anomalies that a scenario can name, by its sentences."""
    found = ["stuck"]
    for step in scenario.steps:
        for sentence, check in CLAIMS.items():
            if step.text.startswith(sentence):
                found += [name for name in ANOMALIES[check] if name not in found]
    return found
