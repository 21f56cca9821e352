"""The claims: each sentence that judges, and its check.

Steps, `explain`, the lint and the plugin read this table.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from upheld.checks import ANOMALIES
from upheld.spec.gherkin import Row, Scenario, Step

STATE_TIMES: Final = 2  # how many times its first size a state may have
NO_TRANSACTION_MS: Final = 1_000  # a third of the transaction timeout, which cannot act by then
_PARAMETER: Final = re.compile(r"\{[^{}]+\}")
_MS_OF: Final = {"ms": 1, "second": 1_000, "seconds": 1_000}


@dataclass(frozen=True)
class Claim:
    """A sentence that claims something of the history.

    Attributes:
        template: The sentence, with its parameters in braces, as its step is defined.
        check: The check that bears it out, or not.
        is_timed: Whether it judges milliseconds, so nothing may boot meanwhile.
        takes: The arguments of its check that its sentence says -> the parameter that says each.
        given: The arguments of its check that are always the same.
        has_table: Whether its check takes the table below its sentence.
        is_of_all: Whether it is made once for all applications together.
    """

    template: str
    check: str
    is_timed: bool = False
    takes: Mapping[str, str] = field(default_factory=dict, hash=False)
    given: Mapping[str, int] = field(default_factory=dict, hash=False)
    has_table: bool = False
    is_of_all: bool = False

    def fits(self, sentence: str) -> bool:
        """Return whether a sentence is this one, whatever its parameters say."""
        literals = map(re.escape, _PARAMETER.split(self.template))
        return re.fullmatch(".+".join(literals), sentence) is not None

    def arguments(self, step: Step) -> dict[str, object]:
        """Return the arguments that its check gets from a step.

        They are those on the harness's own broker.
        """
        literals = map(re.escape, _PARAMETER.split(self.template))
        names = [each[1:].partition(":")[0] for each in _PARAMETER.findall(self.template)]
        said = re.fullmatch("(.+)".join(literals), step.text)
        texts = dict(zip(names, said.groups(), strict=True)) if said else {}
        found: dict[str, object] = dict(self.given)
        found |= {name: _amount(texts[parameter]) for name, parameter in self.takes.items()}
        if self.has_table:
            found["table"] = [list(cells) for cells in step.table]
        return found


CLAIMS: Final = (
    Claim("the visible outputs are the fold of the committed input", "fold"),
    Claim("the outputs match the model in order and count under {mode:Mode}", "relation"),
    Claim("no entry is applied to some of its accounts only", "whole"),
    Claim("no output is duplicated", "once"),
    Claim("no more transactions end than commit intervals begin", "paced"),
    Claim("no output is repeated whose input was committed at the kill", "below-the-commit"),
    Claim("the paused instance adds no visible output", "silent"),
    Claim("no partition has two owners", "owners"),
    Claim("only the active cluster writes", "handed-over"),
    Claim("the old cluster is silent before the new one writes", "handed-over"),
    Claim("the new cluster's first output is visible within 5 seconds", "recovered"),
    Claim("all of the input moves on within 10 seconds of the death", "recovered"),
    Claim("its first new output is visible within {duration:Duration}", "recovered"),
    Claim("the dead letters match the unreadable records under {mode:Mode}", "dead-letters"),
    Claim("99.99 % of all states are visible within 10 seconds", "available"),
    Claim("they share the input, or one of them stops loudly or refuses to start", "noticed"),
    Claim(
        "every output carries the id, timestamp, headers and positions of its input", "preserved"
    ),
    Claim("its store holds everything that is committed", "stored-first"),
    Claim("its memory grows by at most 32 MiB during the outage", "contained"),
    Claim("no key is written to its store more often than once an interval", "throttled"),
    Claim("no batch is too large or goes out too early", "bounded"),
    Claim("it keeps no internal topic", "no-topics"),
    Claim("the last row of every robot has its name", "with-names"),
    Claim("no answer is wrong, uncommitted or older than what was visible before", "answers"),
    Claim("no answer holds uncommitted data", "committed-answers"),
    Claim("the other instances answer all the time", "online"),
    Claim("the side effects cover all visible outputs, with some left over", "told"),
    Claim("its reported lag is one that Kafka had within the last second", "lag"),
    Claim("it goes on or names the torn file", "file-named"),
    Claim(
        "the last states are visible within the commit interval plus {duration:Duration}",
        "promptly",
        is_timed=True,
    ),
    Claim(
        "readers wait at most {duration:Duration} for the transaction that it left",
        "released",
        takes={"bound_ms": "duration"},
    ),
    Claim("it leaves no transaction open", "released", given={"bound_ms": NO_TRANSACTION_MS}),
    Claim("both modes leave the same last rows", "same-rows", is_of_all=True),
    Claim("nothing else changes on the broker", "side-effects", is_of_all=True),
    Claim("exactly the full batches are out within {duration:Duration}", "filled", is_timed=True),
    Claim(
        "no record waits longer than the batch interval plus {duration:Duration}",
        "in-time",
        is_timed=True,
    ),
    Claim("the result is:", "result", has_table=True),
    Claim("it refuses to start or its outputs match the model", "refused-or-right"),
    Claim(
        "its outputs match the model, up to its commits if it refused to go on", "whole-or-refused"
    ),
    Claim("its loud stop names the unreadable record", "named"),
    Claim("its loud stop or its notices name the gap", "gap-named"),
    Claim(
        "its state is at most twice its first size within {duration:Duration}",
        "forgotten",
        given={"times": STATE_TIMES},
    ),
    Claim(
        "its store is current within the persistence interval plus {duration:Duration}",
        "stored",
        is_timed=True,
    ),
    Claim("its committed offsets reach the end of the log within {duration:Duration}", "caught-up"),
    Claim(
        "it keeps at most {topics:Topics} of {partitions:Partitions} beside its table",
        "footprint",
        takes={"topics": "topics", "partitions": "partitions"},
    ),
    Claim(
        "it answers every key with the last row of its table within {duration:Duration}",
        "answered",
    ),
)


@cache
def claim_of(sentence: str) -> Claim | None:
    """Return the claim that a sentence makes; None if it judges nothing."""
    return next((claim for claim in CLAIMS if claim.fits(sentence)), None)


def _amount(text: str) -> int:
    """Return the number that a parameter begins with; a duration is in milliseconds."""
    number, _, unit = text.partition(" ")
    return int(number) * _MS_OF.get(unit, 1)


def sentences_of(row: Row) -> tuple[str, ...]:
    """Return the sentences of a row that judge, each with the cells below it."""
    return tuple(step.whole for step in row.steps if claim_of(step.text))


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
