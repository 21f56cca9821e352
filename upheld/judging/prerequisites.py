"""Say what a row needs of a design and of a broker, by its sentences alone.

A row that cannot be judged is unsupported at once: nothing boots for it, and nothing is written.
If only a running design shows a lack, such as a request that it never sends, the row itself finds
it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from upheld import extras
from upheld.judging.claims import Claim
from upheld.protocol.capabilities import Capability
from upheld.protocol.limits import Limit
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import ComparedWith
from upheld.protocol.subject import OF_APPLICATIONS, PLAINTEXT, SETTINGS
from upheld.spec.gherkin import ON_A_CLUSTER, THROUGH_PROXY, Row, Scenario, Step
from upheld.verdicts import Cannot, MachineLacks, NotOffered

STORE: Final = "state store"  # the setting of that name
PROTOCOL: Final = "group protocol"  # another one
SETS_THE_CLOCK: Final = "its wall clock can be set"
ANOTHER_ANSWERS: Final = "the other instances answer all the time"
STORES: Final = (Capability.SQLITE, Capability.REDIS, Capability.CASSANDRA)


@dataclass(frozen=True)
class Offer:
    """A capability that sentences need, and what a design without it does instead."""

    capability: Capability
    otherwise: str
    templates: tuple[str, ...]

    def is_needed_by(self, step: Step) -> bool:
        """Return whether a sentence needs it."""
        return any(fits(template, step.text) for template in self.templates)


OFFERS: Final = (
    Offer(Capability.SCALE, "runs as one instance", ("it runs in several instances",)),
    Offer(Capability.STANDBY, "takes over from no other cluster", ("it runs in two clusters",)),
    Offer(
        Capability.WORKERS,
        "shares its work among no processes that can be killed one by one",
        ("it runs on {count:d} workers",),
    ),
    Offer(Capability.LAG, "does not say how far it is behind", ("it reports its lag",)),
    Offer(
        Capability.EFFECTS,
        "tells nothing outside of Kafka",
        ("it has a side effect outside of Kafka for each output",),
    ),
    Offer(
        Capability.DEAD_LETTERS,
        "sets nothing aside that it cannot read",
        ("it has a dead-letter topic",),
    ),
    Offer(
        Capability.MEASURE,
        "does not say how much state it holds",
        (
            "the size of its state is measured",
            "its state is at most twice its first size within {duration:Duration}",
        ),
    ),
    Offer(
        Capability.QUERY,
        "answers for no key of its table",
        (
            "no answer is wrong, uncommitted or older than what was visible before",
            "no answer holds uncommitted data",
            ANOTHER_ANSWERS,
            "it answers every key with the last row of its table within {duration:Duration}",
        ),
    ),
)


@dataclass(frozen=True)
class Taken:
    """The sentences that claim what a limit takes away.

    Attributes:
        limit: What the design cannot do.
        templates: The sentences that cannot be judged then.
        mode: The mode in which alone it matters; every mode if it is empty.
    """

    limit: Limit
    templates: tuple[str, ...]
    mode: str = ""

    def is_needed_by(self, row: Row) -> bool:
        """Return whether a row cannot be judged on a design with the limit."""
        said = any(fits(template, step.text) for step in row.steps for template in self.templates)
        return said and self.mode in {"", row.mode}


TAKEN: Final = (
    Taken(
        Limit.TRANSACTION_TIMEOUT,
        (
            "readers wait at most {duration:Duration} for the transaction that it left",
            "the application is paused until the broker aborts its transaction",
        ),
    ),
    Taken(
        Limit.TOPIC_NAMES,
        (
            "it keeps at most {topics:Topics} of {partitions:Partitions} beside its table",
            "it keeps no internal topic",
        ),
    ),
    Taken(Limit.NEW_PARTITIONS, ("its input gets twice as many partitions",)),
    Taken(
        Limit.STATIC_MEMBERSHIP,
        ("two deployments run under the same ids for at most 10 seconds",),
        mode="at_least_once",  # in the other mode the transactional ids show it
    ),
)
# The sentences that a run without a fault cannot answer.
WITHOUT_A_MODEL: Final[Mapping[str, tuple[str, ...]]] = {
    "its records are those of its samples": ("one partition of its input stays empty",),
    "no run without a fault answers for such an input": (
        "its input topic is recreated",
        "its input gets twice as many partitions",
        "retention deletes half of its unread input",
    ),
    "it is started as it is deployed": ("the application starts with no mode set",),
    "its commits are not told from those of its engine": (
        "no more transactions end than commit intervals begin",
    ),
    "its outputs are no compacted table": ("the log cleaner leaves less than half of its table",),
}
# What a sentence says that changes a setting, and the placeholder that tells it an application.
CHANGED: Final[Mapping[str, str]] = {
    "starts in mode": "mode",
    "starts with a commit interval of": "commit_interval_ms",
}
# The sentences that only committed offsets of a group bear out, each with the words of `progress`
# that make these say something else.
OF_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "its committed offsets reach the end of the log within {duration:Duration}": ("none",),
    "no output is repeated whose input was committed at the kill": ("none", "group-leads"),
}
# Sentences that wait for the end of a process, which its supervisor would start again at once.
WAIT_FOR_ITS_END: Final = ("the broker rejects the rest of its transaction with MESSAGE_TOO_LARGE",)
THE_OTHER: Final[Mapping[ComparedWith, str]] = {
    "itself": "itself",
    "previous": "the release before it",
}
# The capabilities by which a design shows something beside its outputs.
ASKED: Final = frozenset({Capability.QUERY, Capability.EFFECTS, Capability.DEAD_LETTERS})
TRANSACTION_TIMEOUT: Final = "transaction timeout"
SECURED: Final = "what a secured connection carries cannot be read, and no request on it can be met"
KILLS_THE_BROKER: Final = "the broker restarts after a crash with a transaction open"


def fits(template: str, sentence: str) -> bool:
    """Return whether a sentence is that of a template, whatever its parameters say."""
    return Claim(template, "").fits(sentence)


def needed(row: Row) -> Iterator[Capability]:
    """Go through the capabilities without which a design cannot be judged on a row."""
    yield from (offer.capability for offer in _offers(row))
    if any(_settings(row, PROTOCOL)):
        yield Capability.GROUP_PROTOCOL
    kept = set(_settings(row, STORE))
    yield from (capability for capability in Capability if capability in kept)


def needs_of(scenario: Scenario) -> list[str]:
    """Return the capabilities that rows of a scenario need, each once."""
    return list(dict.fromkeys(each for row in scenario.rows for each in needed(row)))


def lacking(row: Row, design: Manifest) -> Iterator[str]:
    """Go through the reasons why a design cannot be judged on a row, by its manifest."""
    for offer in _offers(row):
        if offer.capability not in design.capabilities:
            yield f"{design.name} {offer.otherwise} (capability {offer.capability})"
    if Capability.GROUP_PROTOCOL not in design.capabilities:
        for protocol in _settings(row, PROTOCOL):
            yield (
                f"{design.name} cannot be told to join its group by the protocol {protocol} "
                f"(capability {Capability.GROUP_PROTOCOL})"
            )
    for kind in _settings(row, STORE):
        if kind not in design.capabilities:
            yield f"{design.name} keeps no state in {kind} (capability {kind})"
    if design.application:
        yield from _without_a_model(row, f"{design.name} is judged as it is")
        yield from _beyond(row, design)
    elif design.compared_with:
        yield from _by_itself(row, design)


def _without_a_model(row: Row, name: str) -> Iterator[str]:
    """Go through the reasons why a row takes a shipped program and its model."""
    for reason, templates in WITHOUT_A_MODEL.items():
        if any(fits(template, step.text) for step in row.steps for template in templates):
            yield f"{name}: {reason}"


def _by_itself(row: Row, design: Manifest) -> Iterator[str]:
    """Go through the reasons why a design with an adapter is not compared with a run of one."""
    name = f"{design.name} is compared with {THE_OTHER[design.compared_with or 'itself']}"
    yield from _without_a_model(row, name)
    if row.shape is None:
        yield f"{name}: the promise hangs on {row.program} as it is specified"
    elif row.shape not in OF_APPLICATIONS:
        yield f"{name}: {row.program} has more than one input or output, or waits by the clock"
    if any(offer.capability in ASKED for offer in _offers(row)) or any(_settings(row, STORE)):
        yield f"{name}: nothing but its outputs is compared"


def _beyond(row: Row, design: Manifest) -> Iterator[str]:
    """Go through the reasons why an application without an adapter cannot be judged on a row."""
    assert design.application
    name = design.name
    yield from _untold(row, design, set(design.application.placeholders()))
    for template, words in OF_GROUPS.items():
        if design.progress in words and any(fits(template, step.text) for step in row.steps):
            yield (
                f"the committed offsets of {name} do not say how far its outputs are "
                f'(progress = "{design.progress}")'
            )
    if design.images and any(step.text == SETS_THE_CLOCK for step in row.steps):
        yield f"{name} runs in containers, which have the clock of this machine"
    if any(fits(ANOTHER_ANSWERS, step.text) for step in row.steps):
        yield from (
            f"{name} does not say that each instance answers for every key ([query.{role}] "
            "everywhere)"
            for role, query in design.application.query.items()
            if not query.everywhere
        )
    is_waited_for = any(fits(each, step.text) for step in row.steps for each in WAIT_FOR_ITS_END)
    if design.application.restart == "on-exit" and is_waited_for:
        yield (
            f"{name} is started again at once when it ends (restart), so what it leaves behind is "
            "not seen"
        )


def _untold(row: Row, design: Manifest, told: Collection[str]) -> Iterator[str]:
    """Go through the reasons for which a setting of a row does not reach an application.

    Args:
        row: The row.
        design: The application.
        told: The placeholders in its texts.
    """
    name = design.name
    for setting, placeholder in SETTINGS.items():
        is_shortened = design.timeouts == "shortened" or row.mode != "exactly_once"
        if setting == TRANSACTION_TIMEOUT and is_shortened:
            continue  # the proxy sees to it, or there are no transactions
        if any(_settings(row, setting)) and placeholder not in told:
            yield f"{name} is not told its {setting}: design.toml has no {{{placeholder}}}"
    for said, placeholder in CHANGED.items():
        if placeholder not in told and any(said in step.text for step in row.steps):
            setting = placeholder.removesuffix("_ms").replace("_", " ")
            yield f"{name} is not told its {setting}: design.toml has no {{{placeholder}}}"


def not_installed(row: Row) -> Iterator[str]:
    """Go through the modules that a row needs of the harness's own environment."""
    needed = [kind for kind in _settings(row, STORE) if kind in extras.MODULES]
    if any(step.text == SETS_THE_CLOCK for step in row.steps):
        needed.append("clock")
    yield from filter(None, map(extras.lack, needed))


def _offers(row: Row) -> Iterable[Offer]:
    """Return what the sentences of a row need, each once."""
    return dict.fromkeys(o for step in row.steps for o in OFFERS if o.is_needed_by(step))


def _settings(row: Row, name: str) -> Iterator[str]:
    """Go through the values that the configuration of a row has for a setting."""
    return (cells[1] for step in row.steps for cells in step.table if cells[0] == name)


def limited(row: Row, design: Manifest) -> Iterator[str]:
    """Go through the reasons why a design's declared limits rule a row out."""
    for taken in TAKEN:
        limit = taken.limit
        if limit in design.cannot and taken.is_needed_by(row):
            yield f"{design.name} cannot {limit.cannot} ({limit}, see {limit.link})"


def ruled_out(row: Row, design: Manifest) -> Iterator[str]:
    """Go through all reasons in a manifest why a row cannot be judged on its design."""
    yield from lacking(row, design)
    yield from limited(row, design)


def demand(row: Row, design: Manifest, *, broker_is_ours: bool, is_secured: bool) -> None:
    """Demand of a design and of the broker what a row needs of them.

    Args:
        row: The row that is to be judged.
        design: What the design declares, and with it the release before it.
        broker_is_ours: Whether the harness started the broker, and may kill it.
        is_secured: Whether the connections to it are, so that a proxy reads no request on them.

    Raises:
        NotOffered: The design lacks something.
        Cannot: The design declares a limit that takes the promise away.
        MachineLacks: The broker is somebody else's or secured, or an extra is not installed.
    """
    for release in design.releases:
        for reason in lacking(row, release):
            raise NotOffered(reason)
        for reason in limited(row, release):
            raise Cannot(reason)
    for reason in not_installed(row):
        raise MachineLacks(reason)
    if design.security != PLAINTEXT and not is_secured and (reason := extras.lack("tls")):
        raise MachineLacks(reason)
    if not broker_is_ours and ON_A_CLUSTER in row.tags:
        raise MachineLacks("no node of somebody else's cluster is killed")
    if not broker_is_ours and any(step.text == KILLS_THE_BROKER for step in row.steps):
        raise MachineLacks("a cluster of somebody else is not killed")
    if is_secured and (THROUGH_PROXY in row.tags or _is_shortened_for(row, design)):
        raise MachineLacks(SECURED)


def _is_shortened_for(row: Row, design: Manifest) -> bool:
    """Return whether a row sets a transaction timeout that only the proxy brings about."""
    if design.timeouts != "shortened" or TRANSACTION_TIMEOUT not in design.untold:
        return False
    (taken,) = (each for each in TAKEN if each.limit is Limit.TRANSACTION_TIMEOUT)
    return any(_settings(row, TRANSACTION_TIMEOUT)) or taken.is_needed_by(row)
