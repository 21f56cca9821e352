"""Records that are in the input, records that arrive, and arrivals that go on.

Records and keys are those of the program. A ledger's records are entries, and its keys accounts. A
batcher's are events of customers, and a pulse's are signals of robots.
"""

from functools import partial

from pytest_bdd import given, parsers, when

from upheld.generators.inputs import facts as input_facts
from upheld.generators.inputs import made_for
from upheld.generators.ledger import FLAWS, Send, ledger, unreadable
from upheld.generators.pulse import facts as signal_facts
from upheld.generators.pulse import names, signals
from upheld.generators.tables import spoiled
from upheld.generators.visits import facts as visit_facts
from upheld.generators.visits import visits
from upheld.history.marks import Happening
from upheld.programs import Program
from upheld.steps.joins import write
from upheld.steps.parameters import TYPES
from upheld.steps.scene import RELAY, Scene
from upheld.trial.application import Application, Wave
from upheld.verdicts import HarnessError

NAMES = "names"
RECORDS = "records"
SECOND_INPUT = "its second input"
ABORTED = 4  # transactions in a wave of an application's own input


@given(
    parsers.parse(
        "one partition of its input stays empty",
    )
)
def one_is_empty(scene: Scene) -> None:
    """Leave the last partition out of the workload."""
    scene.describe(has_empty_partition=True)


@given(parsers.parse("some records of its input cannot be read"))
def some_are_unreadable(scene: Scene) -> None:
    """Mix records into the workload that its contract does not allow."""
    scene.describe(has_unreadable_records=True)


@given(
    parsers.parse(
        "{count:d} {kind:Kind} over {keys:d} keys are in {place:Place}", extra_types=TYPES
    )
)
def are_in_its_input(scene: Scene, count: int, kind: str, keys: int, place: str) -> None:
    """Write a workload before anything starts."""
    if place == SECOND_INPUT:
        raise HarnessError("a workload of records has one input, and no second one")
    actor = RELAY if place.startswith(RELAY) else ""
    for application in scene.subjects(actor):
        _feed(scene, application, count, kind, keys)


@when(parsers.parse("{count:d} {kind:Kind} over {keys:d} keys arrive", extra_types=TYPES))
def arrive(scene: Scene, count: int, kind: str, keys: int) -> None:
    """Write one more wave of a workload."""
    for application in scene.subjects():
        _feed(scene, application, count, kind, keys)


def _feed(scene: Scene, application: Application, count: int, kind: str, keys: int) -> None:
    """Write records of the kind that the application's program reads.

    Raises:
        HarnessError: The program reads no records of that kind.
    """
    program = application.program
    if kind not in _kinds(program):
        raise HarnessError(f"{program.name} reads no {kind}")
    seed = scene.trial.seed
    partitions = application.inputs[application.reads]
    if subject := scene.trial.manifest.application:
        wave: Wave = partial(
            made_for,
            subject.input,
            seed,
            count=count,
            keys=keys,
            partitions=partitions,
            aborted_transactions=ABORTED,
        )
        if kind.startswith("aborted"):
            wave = partial(_doomed, wave)
        scene.trial.workload.feed(application, wave, input_facts)
    elif program.merged:
        generator = names if kind == NAMES else signals
        said = partial(generator, seed, count=count, robots=keys, partitions=partitions)
        scene.trial.workload.feed(application, said, signal_facts)
    elif program.holds_back:
        events = partial(visits, seed, events=count, customers=keys, partitions=partitions)
        scene.trial.workload.feed(application, events, visit_facts)
    else:
        entries = partial(
            ledger,
            seed,
            entries=count,
            accounts=keys,
            partitions=partitions,
            idle=int(scene.deployment.has_empty_partition),
            republished=kind.startswith("republished"),
            moved=kind.startswith("rehomed"),
            doomed=kind.startswith("aborted"),
            flawed=scene.deployment.has_unreadable_records,
        )
        scene.trial.workload.feed(application, entries)


def _doomed(make: Wave, *, wave: int) -> list[Send]:
    """Make a wave of which nothing comes: all of it is one transaction that is aborted."""
    return [send._replace(transaction=0) for send in make(wave=wave)]


def _kinds(program: Program) -> tuple[str, ...]:
    if program.merged:
        return RECORDS, NAMES
    if program.holds_back:
        return (RECORDS,)
    return RECORDS, *(f"{kind} {RECORDS}" for kind in ("republished", "rehomed", "aborted"))


@when(parsers.parse("a single record arrives"))
def single(scene: Scene) -> None:
    """Write one record, and see what comes out."""
    trickle(scene, 1, 0)


@when(
    parsers.parse(
        "{count:d} records of one key arrive {duration:Duration} apart", extra_types=TYPES
    )
)
def trickle(scene: Scene, count: int, duration: int) -> None:
    """Write one record after the other, and see what comes out meanwhile.

    If its wall clock has jumped before, the clock's evidence is marked at the end.
    """
    trial = scene.trial
    for application in scene.subjects():
        partitions = application.inputs[application.reads]
        one = partial(visits, trial.seed, events=1, customers=1, partitions=partitions, plain=True)
        for _ in range(count):
            due_ms = trial.now_ms + duration
            trial.workload.feed(application, one, visit_facts)
            trial.waits.watch(application, due_ms)
        clock = application.wall_clock
        if clock and scene.clock_jumped:
            evidence = clock.evidence(application.running["a"].pids())
            trial.mark(Happening.CLOCK_JUMPED, **evidence)
    scene.clock_jumped = False


@when(parsers.parse("a record {flaw:Flaw} arrives in {place:Place}", extra_types=TYPES))
def flawed(scene: Scene, flaw: str, place: str) -> None:
    """Write a record that the contract does not allow."""
    if place.startswith(RELAY):
        raise HarnessError("a record that breaks the contract is written to the application alone")
    trial = scene.trial
    for application in scene.subjects():
        program = application.program
        role = program.beside if place == SECOND_INPUT else program.reads
        partitions = application.inputs[application.event.topics[role]]
        write(trial, application, partial(_flawed_record, trial.seed, role, flaw, partitions))


def _flawed_record(seed: int, role: str, flaw: str, partitions: int) -> list[Send]:
    if flaw in FLAWS:
        return [unreadable(seed, flaw, partitions)]
    return [spoiled(role, flaw, partitions)]


@when(parsers.parse("records keep arriving"))
def keep_arriving(scene: Scene) -> None:
    """Write small waves of the last workload, five a second, until the arrivals end."""
    scene.begin_arrivals()


@when(parsers.parse("records keep arriving without a pause"))
def keep_arriving_at_once(scene: Scene) -> None:
    """Write waves of the last workload, each as soon as the one before is there."""
    scene.begin_arrivals(apart_s=0)


@when(parsers.parse("{duration:Duration} pass", extra_types=TYPES))
def time_passes(scene: Scene, duration: int) -> None:
    """See what comes out meanwhile, and then what its store holds.

    The look at the store at the end of an outage stands: no other one follows.
    """
    trial = scene.trial
    looks = not (scene.arrivals and scene.arrivals.saw_outage)
    for application in scene.subjects():
        trial.waits.watch(application, trial.now_ms + duration)
        if application.store and looks:
            trial.probes.look_at_store(application)


@when(parsers.parse("the arrivals end"))
def arrivals_end(scene: Scene) -> None:
    """Write no more waves, and read back what the log made of them."""
    scene.end_arrivals()
