"""The claims of a scenario.

The check of each sentence stands in one table, `upheld.judging.claims`.
"""

from pytest_bdd import parsers, then

from upheld.judging.claims import NO_TRANSACTION_MS, STATE_TIMES
from upheld.nemesis import topics
from upheld.steps.parameters import TYPES
from upheld.steps.scene import Scene


@then(parsers.parse("the visible outputs are the fold of the committed input"))
@then(parsers.parse("no entry is applied to some of its accounts only"))
@then(parsers.parse("no output is duplicated"))
@then(parsers.parse("no output is repeated whose input was committed at the kill"))
@then(parsers.parse("the paused instance adds no visible output"))
@then(parsers.parse("every output carries the id, timestamp, headers and positions of its input"))
@then(parsers.parse("no more transactions end than commit intervals begin"))
@then(parsers.parse("no partition has two owners"))
@then(parsers.parse("only the active cluster writes"))
@then(parsers.parse("the old cluster is silent before the new one writes"))
@then(parsers.parse("the new cluster's first output is visible within 5 seconds"))
@then(parsers.parse("all of the input moves on within 10 seconds of the death"))
@then(parsers.parse("99.99 % of all states are visible within 10 seconds"))
@then(parsers.parse("they share the input, or one of them stops loudly or refuses to start"))
@then(parsers.parse("its store holds everything that is committed"))
@then(parsers.parse("its memory grows by at most 32 MiB during the outage"))
@then(parsers.parse("no key is written to its store more often than once an interval"))
@then(parsers.parse("no batch is too large or goes out too early"))
@then(parsers.parse("it keeps no internal topic"))
@then(parsers.parse("the last row of every robot has its name"))
@then(parsers.parse("no answer is wrong, uncommitted or older than what was visible before"))
@then(parsers.parse("no answer holds uncommitted data"))
@then(parsers.parse("the other instances answer all the time"))
@then(parsers.parse("the side effects cover all visible outputs, with some left over"))
@then(parsers.parse("its reported lag is one that Kafka had within the last second"))
@then(parsers.parse("it goes on or names the torn file"))
@then(parsers.parse("it refuses to start or its outputs match the model"))
@then(parsers.parse("its outputs match the model, up to its commits if it refused to go on"))
def holds(scene: Scene) -> None:
    """Judge the history as it stands."""
    scene.claim()


@then(
    parsers.parse(
        "the outputs match the model in order and count under {mode:Mode}", extra_types=TYPES
    )
)
def matches(scene: Scene, mode: str) -> None:
    """Compare the outputs with the model's.

    They have the order of the model, and each comes as often as the mode allows.
    """
    scene.demand_mode(mode)
    scene.claim()


@then(
    parsers.parse(
        "the dead letters match the unreadable records under {mode:Mode}", extra_types=TYPES
    )
)
def dead_letters_match(scene: Scene, mode: str) -> None:
    """Compare the dead letters with the unreadable records of the committed input.

    Each stands there as often as the mode allows.
    """
    scene.demand_mode(mode)
    scene.claim()


@then(parsers.parse("both modes leave the same last rows"))
@then(parsers.parse("nothing else changes on the broker"))
def holds_of_the_scenario(scene: Scene) -> None:
    """Judge the history of all applications together."""
    first, *_ = scene.subjects()
    scene.claim_of(first)


@then(
    parsers.parse(
        "the last states are visible within the commit interval plus {duration:Duration}",
        extra_types=TYPES,
    )
)
def is_prompt(scene: Scene, duration: int) -> None:
    """Let the input rest: every outcome must be visible soon, and not only at the end."""
    _rest(scene, "commit_interval_ms", duration)


@then(
    parsers.parse(
        "its store is current within the persistence interval plus {duration:Duration}",
        extra_types=TYPES,
    )
)
def is_stored(scene: Scene, duration: int) -> None:
    """Let the input rest: the store has to hold every last state soon."""
    _rest(scene, "persistence_interval_ms", duration)


@then(
    parsers.parse(
        "no record waits longer than the batch interval plus {duration:Duration}", extra_types=TYPES
    )
)
def is_in_time(scene: Scene, duration: int) -> None:
    """Let the input rest: the clock ends a batch below the threshold.

    Three seconds are the look at the clock and two batches of a Spark on half a machine.
    """
    _rest(scene, "interval_ms", duration)


def _rest(scene: Scene, interval: str, beyond_ms: int) -> None:
    """Look at the outputs while the input rests, for an interval and some more; then judge."""
    for application in scene.subjects():
        promised_ms = int(application.event.parameters[interval]) + beyond_ms
        scene.trial.waits.rest(application, promised_ms, may_look_on=True)
        scene.claim_of(application)


@then(
    parsers.parse("exactly the full batches are out within {duration:Duration}", extra_types=TYPES)
)
def is_filled(scene: Scene, duration: int) -> None:
    """Let the input rest: the threshold ends a batch while the clock is far.

    Four seconds are two batches of a Spark on half a machine.
    """
    for application in scene.subjects():
        scene.trial.waits.rest(application, duration)
        scene.claim_of(application)


@then(
    parsers.parse(
        "readers wait at most {duration:Duration} for the transaction that it left",
        extra_types=TYPES,
    )
)
def readers_pass(scene: Scene, duration: int) -> None:
    """Judge how long the last stable offset stayed below the end."""
    scene.claim(bound_ms=duration + scene.trial.rig.later_abort_ms)


@then(parsers.parse("it leaves no transaction open"))
def nothing_is_open(scene: Scene) -> None:
    """Judge that its transaction ended before the transaction timeout could act."""
    scene.claim(bound_ms=NO_TRANSACTION_MS)


@then(
    parsers.parse("its first new output is visible within {duration:Duration}", extra_types=TYPES)
)
def is_back(scene: Scene, duration: int) -> None:
    """Wait for the first new output.

    The time counts from the start of the process: it has the boot and the reading of state in it.
    """
    for application in scene.subjects():
        scene.trial.waits.first_output(application, duration)
        scene.claim_of(application)


@then(
    parsers.parse(
        "its committed offsets reach the end of the log within {duration:Duration}",
        extra_types=TYPES,
    )
)
def catches_up(scene: Scene, duration: int) -> None:
    """Wait until all of the log is committed, its markers included."""
    for application in scene.subjects():
        scene.trial.waits.catch_up(application, duration)
        scene.claim_of(application)


@then(
    parsers.parse(
        "it keeps at most {topics:Topics} of {partitions:Partitions} beside its table",
        extra_types=TYPES,
    )
)
def is_narrow(scene: Scene, topics: int, partitions: int) -> None:
    """Count the topics that the broker has to host for the application.

    None of them may be a copy of the table.
    """
    scene.claim(topics=topics, partitions=partitions)


@then(
    parsers.parse(
        "it answers every key with the last row of its table within {duration:Duration}",
        extra_types=TYPES,
    )
)
def is_answered(scene: Scene, duration: int) -> None:
    """Ask for every key: the answers are those that readers of the table see."""
    for application in scene.subjects():
        scene.trial.waits.query_all(application, duration)
        scene.claim_of(application)


@then(parsers.parse("the result is:"))
def result_is(scene: Scene, datatable: list[list[str]]) -> None:
    """Compare the last rows with those in the feature."""
    scene.claim(table=datatable)


@then(parsers.parse("its loud stop names the unreadable record"))
def record_is_named(scene: Scene) -> None:
    """Wait for `failed` of the kind poison, with topic, partition and offset."""
    for application in scene.subjects():
        scene.trial.waits.expect_failure(application)
        scene.claim_of(application)


@then(parsers.parse("its loud stop or its notices name the gap"))
def gap_is_named(scene: Scene) -> None:
    """Wait for `failed` with the partition of a gap, or for a notice for each of them."""
    for application in scene.subjects():
        topics.expect_gap(scene.trial, application)
        scene.claim_of(application)


@then(
    parsers.parse(
        "its state is at most twice its first size within {duration:Duration}", extra_types=TYPES
    )
)
def has_forgotten(scene: Scene, duration: int) -> None:
    """Measure its state until deletions are forgotten, or the time is up."""
    for application in scene.subjects():
        scene.trial.waits.measure(application, times=STATE_TIMES, within_ms=duration)
        scene.claim_of(application, times=STATE_TIMES)
