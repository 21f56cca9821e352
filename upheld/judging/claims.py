"""The claims: each sentence that judges, and its check. Steps, `explain` and the lint read it."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from upheld.checks import ANOMALIES
from upheld.spec.gherkin import Row, Scenario


@dataclass(frozen=True)
class Claim:
    """A sentence that claims something of the history.

    Attributes:
        sentence: A regular expression that fits the sentence whole.
        check: The check that bears it out, or not.
        acts: Whether its step waits, asks or measures first, and has a function of its own.
        is_timed: Whether it judges milliseconds, so nothing may boot meanwhile.
    """

    sentence: str
    check: str
    acts: bool = False
    is_timed: bool = False


CLAIMS: Final = (
    Claim("the visible outputs are the fold of the committed input", "fold"),
    Claim(r"the outputs are the model's, in the order and as often as \w+ allows", "relation"),
    Claim("no entry is applied to some of its accounts only", "whole"),
    Claim("no output stands there twice", "once"),
    Claim("no more transactions end than intervals begin", "paced"),
    Claim("nothing comes again whose input was committed at the kill", "below-the-commit"),
    Claim("nothing of the paused instance is visible", "silent"),
    Claim("no partition has two owners", "owners"),
    Claim("only the active cluster has written", "handed-over"),
    Claim("the old cluster was silent before the new one wrote", "handed-over"),
    Claim("the new cluster's first output was visible within 5 seconds", "recovered"),
    Claim("all of the input went on within 10 seconds", "recovered"),
    Claim(
        r"the dead letters are what cannot be read of the committed input, as often as \w+ allows",
        "dead-letters",
    ),
    Claim(
        r"99\.99 % of what arrived was counted in a visible output within 10 seconds", "available"
    ),
    Claim("one of the two has stopped loudly, or refused to start", "noticed"),
    Claim(
        "every output carries its input's id, timestamp and headers, and the chain of positions",
        "preserved",
    ),
    Claim("its store holds all that is committed", "stored-first"),
    Claim("while its (store|broker) was away, it took 32 MiB of memory at most", "contained"),
    Claim("no account is written more often than once an interval", "throttled"),
    Claim("no batch is larger than the threshold, and none below it goes out early", "bounded"),
    Claim("it keeps no topic of its own", "no-topics"),
    Claim("the last row of every robot has its name", "with-names"),
    Claim("no answer is wrong, uncommitted or older than what was visible before", "answers"),
    Claim("no answer holds what is not committed", "committed-answers"),
    Claim("the others have answered all the time", "online"),
    Claim("all that is visible was told outside of Kafka, and more than that", "told"),
    Claim("its lag was at all times what Kafka said, or had said within the second before", "lag"),
    Claim("it has gone on, or said which file is torn", "file-named"),
    Claim(
        "while the input rests, its outcome is visible within the commit interval and 2 seconds",
        "promptly",
        acts=True,
        is_timed=True,
    ),
    Claim(r"readers wait \d+ ms at most for the transaction that it left", "released", acts=True),
    Claim("it leaves no transaction open", "released", acts=True),
    Claim("both modes leave the same last rows", "same-rows", acts=True),
    Claim("nothing else changes on the broker", "side-effects", acts=True),
    Claim(
        "within 4 seconds every full batch is out, and nothing else",
        "filled",
        acts=True,
        is_timed=True,
    ),
    Claim(
        "no event waits longer than the interval and 3 seconds", "in-time", acts=True, is_timed=True
    ),
    Claim("the result is:", "result", acts=True),
    Claim("it has refused, or the outputs are the model's", "refused-or-right", acts=True),
    Claim("it stops loudly and names the record", "named", acts=True),
    Claim("it stops loudly and names where", "gap-named", acts=True),
    Claim(
        "2 seconds after deletions may be forgotten, it holds no more than twice as much",
        "forgotten",
        acts=True,
    ),
    Claim(
        "while the input rests, its store holds every last state within the interval and 2 seconds",
        "stored",
        acts=True,
        is_timed=True,
    ),
    Claim(r"its first new output is visible within \d+ seconds", "recovered", acts=True),
    Claim(
        r"its committed offsets reach the end of the log within \d+ seconds",
        "caught-up",
        acts=True,
    ),
    Claim(
        r"beside its table it keeps \d+ topics? of \d+ partitions? at most", "footprint", acts=True
    ),
    Claim(
        "for every robot it answers with the last row of its table within 2 seconds",
        "answered",
        acts=True,
    ),
)


@cache
def claim_of(sentence: str) -> Claim | None:
    """Return the claim that a sentence makes; None if it judges nothing."""
    return next((claim for claim in CLAIMS if re.fullmatch(claim.sentence, sentence)), None)


def claims_of(row: Row) -> list[Claim]:
    """Return the claims of a row, in the order of its sentences."""
    return [claim for step in row.steps if (claim := claim_of(step.text))]


def anomalies_of(scenario: Scenario) -> list[str]:
    """Return the anomalies that a scenario can name, in the order of its sentences."""
    found = ["stuck"]
    for row in scenario.rows:
        for claim in claims_of(row):
            found += [name for name in ANOMALIES[claim.check] if name not in found]
    return found
