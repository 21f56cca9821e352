"""The types of the parameters in sentences: their texts, and the values of those.

Each is declared as Cucumber's language service wants it, with a name and a pattern that are
literals. So an editor completes sentences without any settings. The name is that of the parameter
and its type, as sentences write them in braces.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

from upheld.generators.ledger import FLAWS
from upheld.nemesis.moments import MOMENTS
from upheld.shapes import INSTANCES
from upheld.verdicts import HarnessError

SPOILED: Final = frozenset(
    (
        "with a null key",
        "that is no JSON",
        "with text for a number",
        "with a number for a text",
        "without a field",
    )
)
BEFORE_ITS_OFFSETS: Final = "with a transaction open, before its offsets"
MS_OF: Final = {"ms": 1, "second": 1_000, "seconds": 1_000}


@dataclass(frozen=True)
class ParameterType:
    """A type as `parse` wants it: a pattern, and a call that converts the text."""

    pattern: str
    convert: Callable[[str], object]
    known: frozenset[str]  # the texts that it takes; empty: all that fit the pattern

    def __call__(self, text: str) -> object:
        """Return what the text stands for.

        Raises:
            ValueError: It is none of the known texts.
        """
        if self.known and text not in self.known:
            raise ValueError(f"{text} is none of {', '.join(sorted(self.known))}")
        return self.convert(text)


TYPES: Final[dict[str, ParameterType]] = {}


def parameter_type(
    *,
    name: str,
    regexp: str,
    to: Callable[[str], object] = str,
    known: Iterable[str] = (),
) -> None:
    """Declare a type of parameter.

    Args:
        name: The parameter and its type.
        regexp: The pattern of its texts.
        to: What converts the text, or refuses it by ValueError.
        known: The texts that it takes; empty: all that fit the pattern.
    """
    TYPES[name.partition(":")[2]] = ParameterType(regexp, to, frozenset(known))


def milliseconds(text: str) -> int:
    """Return how long a duration lasts, in milliseconds."""
    number, _, unit = text.partition(" ")
    if unit not in MS_OF or not number.isdecimal():
        raise HarnessError(f"{text} is no duration, such as 500 ms or 2 seconds")
    return int(number) * MS_OF[unit]


def amount(text: str, unit: str) -> int:
    """Return how many units a text says.

    Raises:
        HarnessError: It says another unit, or none.
    """
    number, _, said = text.partition(" ")
    if said != unit or not number.isdecimal():
        raise HarnessError(f"{text} is no number of {unit}, such as 64 {unit}")
    return int(number)


def first_number(text: str) -> int:
    """Return the number that a text begins with."""
    return int(text.split(maxsplit=1)[0])


def program(text: str) -> str:
    """Return the program that is named, or the instance of a shape."""
    return INSTANCES.get(text.removeprefix("a "), text)


def kafka_error(text: str) -> ErrorCode:
    """Return the error that Kafka calls so."""
    try:
        return ErrorCode[text.lower()]
    except KeyError:
        raise ValueError(f"{text} is no error of Kafka's protocol") from None


# What runs.
parameter_type(name="program:Program", regexp="(?:a )?[a-z]+", to=program)
parameter_type(name="mode:Mode", regexp="[a-z_]+")
parameter_type(
    name="actor:Actor",
    regexp="the (?:application|second application|relay|earlier release|later release)",
)
parameter_type(name="instance:Instance", regexp="[a-d]")
parameter_type(name="worker:Worker", regexp="a worker|another worker")
parameter_type(name="cluster:Cluster", regexp="(?:a|the) second cluster|the first cluster")
parameter_type(name="change:Change", regexp="joins(?: as the later release)?|leaves|is killed")
parameter_type(
    name="how:Start",
    regexp="with nothing prepared|with no mode set|unless it refuses|in mode [a-z_]+"
    "|with a commit interval of [0-9]+ (?:ms|seconds?)",
)
parameter_type(name="layout:Layout", regexp="several instances|two clusters")
parameter_type(
    name="restart:Restart",
    regexp="once if it stops loudly(?: while it drains|, unless it refuses)"
    "|(?:on an empty disk )?as soon as it is killed",
)

# What its input holds.
parameter_type(name="place:Place", regexp="its input|its second input|the relay's input")
parameter_type(name="kind:Kind", regexp="(?:republished |rehomed |aborted )?records|names")
parameter_type(name="role:Role", regexp="[a-z-]+")
parameter_type(
    name="flaw:Flaw",
    regexp="(?:with|without|that is|of) [A-Za-z ]+",
    known=SPOILED.union(FLAWS),
)
parameter_type(name="fate:RowFate", regexp="moves to another partner|is deleted")
parameter_type(name="fate:PartnerFate", regexp="changes|is deleted")
parameter_type(
    name="race:Race",
    regexp="deletions right after insertions|moves across the partitions of partners",
)

# When and how it is struck.
parameter_type(
    name="moment:Moment",
    regexp="(?:after|between|with) [a-z ]+",
    known=MOMENTS.keys() - {BEFORE_ITS_OFFSETS},
)
parameter_type(name="side:Side", regexp="before|after")
parameter_type(name="request:Request", regexp="[A-Z][A-Za-z]+")
parameter_type(name="error:KafkaError", regexp="[A-Z_]+", to=kafka_error)
parameter_type(
    name="fate:DiskFate",
    regexp="are copied|are set back to the copy|run full until it stops loudly or is killed",
)
parameter_type(name="outage:Outage", regexp="locked|slow|down|full")
parameter_type(name="direction:Direction", regexp="forward|back")

# How many, and how long.
parameter_type(name="count:d", regexp="[0-9]+", to=int)
parameter_type(name="keys:d", regexp="[0-9]+", to=int)
parameter_type(name="changes:d", regexp="[0-9]+", to=int)
parameter_type(name="rows:d", regexp="[0-9]+", to=int)
parameter_type(name="partners:d", regexp="[0-9]+", to=int)
parameter_type(name="topics:Topics", regexp="[0-9]+ topics?", to=first_number)
parameter_type(name="partitions:Partitions", regexp="[0-9]+ partitions?", to=first_number)
parameter_type(name="duration:Duration", regexp="[0-9]+ (?:ms|seconds?)", to=milliseconds)
