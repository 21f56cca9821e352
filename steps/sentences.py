"""Every sentence of the main job. «It» is every application under test; «the relay» is the one
upstream of it.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial

from kio.schema.errors import ErrorCode
from pytest_bdd import given, parsers, step, then, when

from upheld.generators.ledger import ledger
from upheld.generators.pulse import facts as signal_facts
from upheld.generators.pulse import names, signals
from upheld.generators.visits import facts as visit_facts
from upheld.generators.visits import visits
from upheld.history.marks import Happening, Look
from upheld.injectors.clock import WallClock
from upheld.injectors.proxy.errors import Moment
from upheld.injectors.proxy.rules import Fault
from upheld.judging.claims import CLAIMS, claim_of
from upheld.nemesis import brokers, disks, membership, rejections, stores, topics
from upheld.nemesis.moments import AIMS, hold
from upheld.nemesis.requests import arrive, give_up, meet, out_of_reach
from upheld.protocol.messages import Mode
from upheld.trial.application import Application
from upheld.trial.trial import ON_A_CLUSTER, SETTLE_S, TRANSACTION_TIMEOUT_MS, Trial
from upheld.verdicts import NotOffered

DIRECT = "|".join(claim.sentence for claim in CLAIMS if not claim.acts)
REFUSALS = {  # as a sentence says it -> what the client is told
    "for want of replicas": ErrorCode.not_enough_replicas,
    "as if too few replicas had it": ErrorCode.not_enough_replicas_after_append,
    "as if the coordinator had moved": ErrorCode.not_coordinator,
    "as if the coordinator were loading": ErrorCode.coordinator_load_in_progress,
}
CHANGE = "(?:a is killed with a transaction open|[a-d] (?:joins|leaves|is killed)|(?:a|another) worker is killed)"
APART_S = 0.2  # between the small waves that arrive while instances come and go
UPSTREAM = "upstream"
TAKEN_OVER_WITHIN_MS = (
    5_000  # from the order on: half of the 10 seconds that the article's service level allows
)
WENT_ON_WITHIN_MS = 10_000  # from the death on: half of what a start with nothing prepared may take
VISIBLE_WITHIN_MS = 2_000  # on top of the commit interval, promised by every program's contract
# Two batches of a Spark on half a machine, and far from the minute that the clock takes there.
FILLED_WITHIN_MS = 4_000
FLUSHED_WITHIN_MS = (
    3_000  # on top of the interval of the batches: the look at the clock, and two such batches
)


def subjects(trial: Trial, who: str = "it") -> Iterator[Application]:
    """The applications that a sentence speaks of."""
    return (a for a in trial.applications.values() if (a.name == UPSTREAM) == (who == "the relay"))


@given(
    parsers.re(
        r"(?P<program>\w+) in mode (?P<mode>\w+) on (?P<partitions>\d+)( and (?P<beside>\d+))? "
        r"partitions"
        rf"({ON_A_CLUSTER})?"  # which a trial has from its beginning
        r"(?P<several>, in several instances)?(?P<clusters>, in two clusters)?(, on "
        r"(?P<workers>\d+) workers)?"
        r"(, committing every (?P<interval_ms>\d+) ms)?(, with a transaction timeout of "
        r"(?P<timeout_ms>\d+) ms)?"
        r"(, with batches of (?P<threshold>\d+) events or (?P<wait_ms>\d+) ms)?"
        r"(, remembering deletions for (?P<delete_retention_ms>\d+) ms)?"
        r"(, keeping its state in (?P<store>\w+) every (?P<persistence_interval_ms>\d+) ms)?"
        r"(?P<rolls>, with its table in segments of a second)?(?P<wired>, with a proxy in between)?"
        r"(?P<asked>, asked all along how far it is behind)?(?P<tells>, telling each output "
        r"outside of Kafka)?"
        r"(, on disks of (?P<disks_mb>\d+) MB)?"
        r"(?P<letters>, with a dead-letter topic)?"
    )
)
def in_mode(  # noqa: PLR0913, PLR0917 (what the sentence says, by name)
    trial: Trial,
    program: str,
    mode: Mode,
    partitions: str,
    beside: str | None,
    several: str | None,
    clusters: str | None,
    workers: str | None,
    interval_ms: str | None,
    timeout_ms: str | None,
    threshold: str | None,
    wait_ms: str | None,
    delete_retention_ms: str | None,
    store: str | None,
    persistence_interval_ms: str | None,
    rolls: str | None,
    wired: str | None,
    asked: str | None,
    tells: str | None,
    disks_mb: str | None,
    letters: str | None,
) -> None:
    """Declare the application under test, with the program's own parameters and the usual
    transaction timeout or others.
    """
    for is_needed, capability, otherwise in (
        (several, "scale", "runs as one instance"),
        (workers, "workers", "shares its work among no processes that can be killed one by one"),
        (clusters, "standby", "takes over from no other cluster"),
        (asked, "lag", "does not say how far it is behind"),
        (tells, "effects", "tells nothing outside of Kafka"),
        (letters, "dead-letters", "sets nothing aside that it cannot read"),
    ):
        if is_needed and capability not in trial.manifest.capabilities:
            raise NotOffered(f"{trial.manifest.name} {otherwise} (capability {capability})")
    if several or clusters:
        trial.rig.pool(trial.manifest).prepare()
    said = {"commit_interval_ms": interval_ms, "delete_retention_ms": delete_retention_ms}
    said |= {
        "threshold": threshold,
        "interval_ms": wait_ms,
        "persistence_interval_ms": persistence_interval_ms,
    }
    parameters: dict[str, int | str] = {name: int(value) for name, value in said.items() if value}
    parameters |= ({"store": store} if store else {}) | ({"effects": 1} if tells else {})
    count, second, timeout = int(partitions), int(beside or 0), int(timeout_ms or 0)
    subject = trial.application(
        program,
        mode,
        count,
        beside=second,
        timeout_ms=timeout,
        parameters=parameters,
        rolls=bool(rolls),
        sets_aside=bool(letters),
    )
    subject.several, subject.workers, subject.through_proxy = (
        bool(several),
        int(workers or 0),
        bool(wired),
    )
    subject.lag_due_ms = 0 if asked else None
    if disks_mb:
        disks.mount(subject.directory, int(disks_mb))


@given(parsers.re(r"the same in mode (?P<mode>\w+) beside it"))
def beside(trial: Trial, mode: Mode) -> None:
    """Declare the same program once more, on topics of its own."""
    first = next(subjects(trial))
    trial.application(first.program.name, mode, first.partitions, name=f"{first.name}-{mode}")


@given(
    parsers.re(
        r"relay in mode at_least_once feeds (?P<program>\w+) in mode (?P<mode>\w+) on "
        r"(?P<partitions>\d+) partitions"
    )
)
def fed_by_a_relay(trial: Trial, program: str, mode: Mode, partitions: str) -> None:
    """Declare the application under test with the design's own relay upstream."""
    trial.application("relay", "at_least_once", int(partitions), name=UPSTREAM)
    trial.application(program, mode, int(partitions), upstream=UPSTREAM)


@step(
    parsers.re(
        r"(?P<entries>\d+) (?P<kind>\w+ )?entries over (?P<accounts>\d+) accounts (wait|arrive) "
        r"in (?P<who>its|the relay's) input"
        r"(?P<idle>, and one partition has none)?(?P<flawed>, and some between them cannot be "
        r"read)?"
    )
)
def entries_wait(  # noqa: PLR0913, PLR0917 (what the sentence says, by name)
    trial: Trial,
    entries: str,
    accounts: str,
    kind: str | None,
    who: str,
    idle: str | None,
    flawed: str | None,
) -> None:
    """Write a workload: the usual one, `republished` with repeats, `moving` with a changing first
    hop, or all of it `aborted`.
    """
    kinds = {
        "republished": kind == "republished ",
        "moved": kind == "moving ",
        "doomed": kind == "aborted ",
    }
    kinds["flawed"] = bool(flawed)
    for application in subjects(trial, "the relay" if who == "the relay's" else "it"):
        size = partial(ledger, trial.seed, entries=int(entries), accounts=int(accounts))
        partitions = application.inputs[application.reads] - bool(idle)
        trial.feed(application, partial(size, partitions=partitions, **kinds))


@step(
    parsers.re(r"(?P<events>\d+) events of (?P<customers>\d+) customers (wait|arrive) in its input")
)
def visits_wait(trial: Trial, events: str, customers: str) -> None:
    """Write visits, with nulls and aborted ones between them."""
    for application in subjects(trial):
        wave = partial(visits, trial.seed, events=int(events), customers=int(customers))
        trial.feed(application, partial(wave, partitions=application.partitions), visit_facts)


@step(
    parsers.re(
        r"(?P<count>\d+) (?P<what>signals|names) of (?P<robots>\d+) robots (wait|arrive) in its "
        r"inputs"
    )
)
def signals_wait(trial: Trial, count: str, what: str, robots: str) -> None:
    """Write what robots have to say, or what they are called; it is asked for them from here on,
    one after the other.
    """
    for application in subjects(trial):
        wave = partial(
            signals if what == "signals" else names,
            trial.seed,
            count=int(count),
            robots=int(robots),
        )
        partitions = application.inputs[application.reads]
        trial.feed(application, partial(wave, partitions=partitions), signal_facts)


@when(
    parsers.re(
        r"(?P<events>\d+) events of one customer arrive (?P<apart_ms>\d+) ms apart"
        r"(, while the wall clock jumps (?P<seconds>\d+) s (?P<direction>forward|back))?"
    )
)
def visits_trickle(
    trial: Trial, events: str, apart_ms: str, seconds: str | None, direction: str | None
) -> None:
    """Write one event after the other, and see what comes out meanwhile.

    If it jumps, the wall clock of every process of the design is set at the beginning; the
    monotonic one goes on as ever.
    """
    for application in subjects(trial):
        one = partial(
            visits, trial.seed, events=1, customers=1, partitions=application.partitions, plain=True
        )
        clock = application.wall_clock
        if clock and seconds:
            clock.jump(int(seconds) * (1 if direction == "forward" else -1))
        for _ in range(int(events)):
            due_ms = trial.now_ms + int(apart_ms)
            trial.feed(application, one, visit_facts)
            trial.watch(application, due_ms)
        if clock and seconds:
            trial.mark(
                Happening.CLOCK_JUMPED,
                **clock.evidence(application.running["a"].pids()),
            )


@when(
    parsers.re(
        r"(?P<who>it|the relay) starts(?P<again> again)?(?P<clock> under a wall clock that can be "
        r"set)?"
        r"(?P<cold> with nothing prepared)?"
        r"(?P<drains> and drains its input)?"
        r"(?P<default> with no mode set)?(?P<refuses>, unless it refuses to)?(?P<mended>, from "
        r"mended disks if it stops loudly)?"
    )
)
def starts(  # noqa: PLR0913, PLR0917 (what the sentence says, by name)
    trial: Trial,
    who: str,
    clock: str | None,
    cold: str | None,
    drains: str | None,
    default: str | None,
    refuses: str | None,
    mended: str | None,
) -> None:
    """Start instance a, and wait until it has drained its input where the sentence says so."""
    for application in subjects(trial, who):
        if clock:
            application.wall_clock = WallClock(application.directory)
        if not application.wave:  # what an instance upstream wrote meanwhile
            trial.look_at_input(application)
        if mended:
            disks.start_torn(trial, application)
            started: object = True
        else:
            started = trial.start(
                application, cold=bool(cold), default_mode=bool(default), may_refuse=bool(refuses)
            )
        if drains and started:
            trial.drain(application)


@when(
    parsers.re(
        r"more of them arrive (for (?P<seconds>\d+) seconds|until the cleaner has left less than "
        r"half of its table)"
        r"(, and (its store is (?P<how>locked|slow|down)|(?P<away>the broker is out of its reach))"
        r"( meanwhile| for (?P<of_them>\d+) of them))?"
    )
)
def go_on_arriving(
    trial: Trial, seconds: str | None, how: str | None, away: str | None, of_them: str | None
) -> None:
    """Write small waves, and see what comes out; meanwhile the store is disturbed, or no broker is
    in reach of instance a.
    """
    for application in subjects(trial):
        if not seconds:
            with trial.feeding(application, APART_S):
                trial.await_cleaner(application)
            continue
        until_ms, length_ms = trial.now_ms + 1000 * int(seconds), 1000 * int(of_them or seconds)
        with trial.feeding(application, APART_S):
            if how:
                stores.disturb(trial, application, how, length_ms)
            elif away:
                with out_of_reach(trial, application):
                    trial.watch(application, trial.now_ms + length_ms)
            trial.watch(application, until_ms)
            if application.store and not how:
                trial.look_at_store(application)


@when(
    parsers.re(
        r"it drains its input(, and rests for (?P<seconds>\d+) seconds|(?P<again>, started again "
        r"if it stops loudly))?"
    )
)
def drains(trial: Trial, seconds: str | None, again: str | None) -> None:
    """Wait until what has arrived is done, and see what it does with nothing to do."""
    for application in subjects(trial):
        (trial.drain_again if again else trial.drain)(application)
        trial.watch(application, trial.now_ms + 1000 * int(seconds or 0))
        trial.look_outside(application)


@when(
    parsers.re(
        r"(?P<who>it|the relay) is killed ((?P<side>before|after) its next "
        r"(?P<request>\w+)|(?P<moment>[^,]+))"
        r"(?P<at_once>, and starts again at once)?(?P<for_good>, for good)?(?P<is_fed>, while "
        r"more of them arrive)?"
    )
)
def killed(  # noqa: PLR0913, PLR0917 (what the sentence says, by name)
    trial: Trial,
    who: str,
    side: Moment,
    request: str | None,
    moment: str,
    at_once: str | None,
    for_good: str | None,
    is_fed: str | None,
) -> None:
    """SIGKILL every process of instance a at that moment, and see what readers of committed data
    have of it.

    Before a request the broker never has it; after one it has done what was asked, and the answer
    is unread. A transaction that was left open is the successor's to settle; where that starts at
    once, or never does, how long readers wait is measured.
    """
    for application in subjects(trial, who):
        with trial.feeding(application, APART_S) if is_fed else nullcontext():
            if request:
                rule = meet(trial, application, "hold", side, request)
                trial.kill(application)
                trial.rig.open_proxy().release(rule, is_lost=True)
            else:
                hold(trial, application, AIMS[moment](trial, application))
                trial.kill(application)
        if at_once:
            released_ms = trial.watch_release(application)
            trial.start(application)
            trial.settle(application, waited_ms=released_ms.result())
        else:
            trial.settle(application, waits=bool(for_good))


@when(
    parsers.re(r"it is stopped gracefully(?P<twice> while more of them arrive, and told so twice)?")
)
def stopped(trial: Trial, twice: str | None) -> None:
    """Ask instance a to close, or, with its input going on, ask again when it has; what it applied
    is committed.
    """
    for application in subjects(trial):
        with trial.feeding(application) if twice else nullcontext():
            trial.stop(application, twice=bool(twice))
        trial.settle(application)
        if twice:
            trial.mark_the_rest(application)


@when(
    parsers.re(
        r"it is (paused with a transaction open, and a successor drains its input"
        r"|killed with its next (?P<request>\w+) on the way, which arrives when a successor has "
        r"drained its input)"
    )
)
def succeeded(trial: Trial, request: str | None) -> None:
    """SIGSTOP every process of instance a, or SIGKILL them with a request held, and start instance
    b in its place.
    """
    for application in subjects(trial):
        if request:
            rule = meet(trial, application, "hold", "before", request)
            trial.kill(application)
        else:
            hold(
                trial,
                application,
                AIMS["with a transaction open, before its offsets"](trial, application),
            )
        trial.start(application, "b", in_place_of="a")
        paused = application.running.pop("a", None)
        trial.drain(application, outputs_too=False)
        if paused:
            application.running["a"] = paused
        else:
            arrive(trial, rule)
            trial.settle(application)


@when("the paused instance goes on")
def goes_on(trial: Trial) -> None:
    """SIGCONT the zombie, and give it the settle time to emit, or to end itself."""
    for application in subjects(trial):
        zombie = application.running["a"]
        trial.ends(application, Look.BEFORE_ZOMBIE)
        trial.resume(application)
        trial.wait(SETTLE_S, lambda zombie=zombie: zombie.is_over)  # type: ignore[misc]
        # Nothing may follow within the settle time, whether it lives or not.
        trial.wait(SETTLE_S, lambda: False)
        del application.running["a"]
        ended = (
            f"{zombie.failed.kind}: {zombie.failed.message}"
            if zombie.failed
            else f"exit {zombie.exit_code}"
        )
        zombie.kill()
        trial.happened(application, "a", "killed", f"after the settle time; {ended}")
        trial.settle(application)


@when(
    parsers.re(
        rf"(?P<changes>{CHANGE}(?:(?:,| and) {CHANGE})*)(?P<at_once>, back to back,)? while more "
        r"of them arrive"
    )
)
def come_and_go(trial: Trial, changes: str, at_once: str | None) -> None:
    """Start, stop and kill instances by their names; each time, or at the end, wait until the input
    is shared among who runs.
    """
    does: dict[str, Callable[[Application, str], object]]
    does = {"joins": trial.start, "leaves": trial.stop, "is killed": trial.kill}
    if not at_once:
        does["is killed"] = partial(membership.lose, trial, within_ms=WENT_ON_WITHIN_MS)
    for application in subjects(trial):
        with trial.feeding(application, APART_S):
            for name, change, moment in re.findall(
                r"(\w|\w+ worker) (joins|leaves|is killed)( with a transaction open)?", changes
            ):
                if moment:
                    hold(trial, application, AIMS[moment.strip()](trial, application))
                (partial(membership.kill_worker, trial) if "worker" in name else does[change])(
                    application, name
                )
                if not at_once:
                    membership.share(trial, application)
            if at_once:
                membership.share(trial, application)


@when(
    parsers.re(
        r"(?P<what>its local state is wiped|its disks are kept as they are|its disks are set back "
        r"to that"
        r"|half of what it has not read falls off the log|its input (gets twice as many "
        r"partitions|is deleted and made anew)"
        r"|the file that it wrote last is torn|its disks run full until it stops loudly or is "
        r"killed)"
        r"(?P<is_fed>, while more of them arrive)?"
    )
)
def befall(trial: Trial, what: str, is_fed: str | None) -> None:
    """While it is down: delete the instance's own disk; or copy every disk of the application, or
    put the copy in their place; or cut one file in half; or have the broker delete records that are
    not committed yet, as when their retention is over. Or add partitions, or make another topic of
    that name; or leave no room on its disks."""
    does: dict[str, Callable[[Application], object]]
    does = {
        "its local state is wiped": partial(disks.wipe, trial),
        "its disks are kept as they are": disks.keep,
        "its disks are set back to that": partial(disks.set_back, trial),
        "half of what it has not read falls off the log": partial(topics.cut, trial),
        "its input gets twice as many partitions": partial(topics.grow, trial),
        "its input is deleted and made anew": partial(topics.make_anew, trial),
        "the file that it wrote last is torn": partial(disks.tear, trial),
        "its disks run full until it stops loudly or is killed": partial(disks.run_full, trial),
    }
    for application in subjects(trial):
        with trial.feeding(application, APART_S) if is_fed else nullcontext():
            does[what](application)


@when("a second deployment under the same ids starts while more of them arrive, and both are ended")
def deployed_twice(trial: Trial) -> None:
    """Start it with the same settings and other disks; the two have 10 seconds to notice."""
    for application in subjects(trial):
        with trial.feeding(application, APART_S):
            membership.start_another(trial, application)


@when("a second cluster stands by, and takes over while more of them arrive")
def taken_over(trial: Trial) -> None:
    """Start it beside the first, tell the first to hand over and the second to go on from there,
    and end the first.
    """
    for application in subjects(trial):
        trial.start(application, "green", apart=True, cluster="green")
        with trial.feeding(application, APART_S):
            membership.switch_clusters(trial, application, TAKEN_OVER_WITHIN_MS)


@when(
    parsers.re(
        r"the broker refuses its outputs in the middle of a transaction|the broker is killed with "
        r"a transaction open, and comes "
        r"(?P<back>back)"
        r"|the broker that coordinates its transactions is killed with one open, and comes back "
        r"when another coordinates "
        r"(?P<moves>them)"
        r"|(?P<answer>the answer to )?its next (?P<request>\w+) is (?P<how>lost with its "
        r"connection|"
        r"lost and nothing follows on its connection)|its next (?P<refused>\w+) is "
        r"(?P<applied>applied, and )?refused "
        r"(?P<why>for want of replicas|as if (too few replicas had it|the coordinator (had "
        r"moved|were loading)))"
    )
)
def goes_wrong(  # noqa: PLR0913, PLR0917 (what the sentence says, by name)
    trial: Trial,
    back: str | None,
    moves: str | None,
    answer: str | None,
    request: str | None,
    how: str | None,
    refused: str | None,
    applied: str | None,
    why: str,
) -> None:
    """SIGKILL the broker under an open transaction, or the one of three that coordinates it, and
    start it again; or lower the output topic's max.message.bytes, and wait for the loud stop.

    Or strike a request of instance a, before the broker has it or with the answer unread: close its
    connection, or let that fall silent until the client gives it up. Or answer in the place of the
    broker, once, before it has the request or when it is done.
    """
    for application in subjects(trial):
        if refused:
            meet(
                trial,
                application,
                "refuse",
                "after" if applied else "before",
                refused,
                REFUSALS[why],
            )
        elif request:
            fault: Fault = "close" if how == "lost with its connection" else "silence"
            rule = meet(trial, application, fault, "after" if answer else "before", request)
            if fault == "silence":
                give_up(trial, application, rule)
        elif back:
            brokers.restart(trial, application)
        elif moves:
            brokers.move_coordinator(trial, application)
        else:
            rejections.refuse_outputs(trial, application)


@then(parsers.re(f"(?P<sentence>{DIRECT})"))
def is_so(trial: Trial, sentence: str) -> None:
    """What has been recorded bears it out."""
    claim = claim_of(sentence)
    assert claim
    for application in subjects(trial):
        trial.claim(claim.check, application, sentence)


@then("while the input rests, its outcome is visible within the commit interval and 2 seconds")
def is_prompt(trial: Trial) -> None:
    """Nothing more arrives: everything must show soon, and not only at the end."""
    for application in subjects(trial):
        interval_ms = int(application.event.parameters["commit_interval_ms"])
        trial.paused_input(application, interval_ms + VISIBLE_WITHIN_MS)
        trial.claim(
            "promptly",
            application,
            "its outcome is visible within the commit interval and 2 seconds",
        )


@then(
    parsers.re(
        r"readers wait (?P<wait_ms>\d+) ms at most for the transaction that it left|it leaves no "
        r"transaction open"
    )
)
def readers_pass(trial: Trial, wait_ms: str | None) -> None:
    """How long the last stable offset stayed below the end; none left open means: gone before the
    timeout can act.
    """
    bound_ms = TRANSACTION_TIMEOUT_MS // 3
    if wait_ms:
        bound_ms = int(wait_ms) + trial.rig.later_abort_ms
    for application in subjects(trial):
        trial.claim(
            "released", application, f"readers wait {bound_ms} ms at most", bound_ms=bound_ms
        )


@then("both modes leave the same last rows")
def same_rows(trial: Trial) -> None:
    """The setting changes nothing else."""
    trial.claim("same-rows", next(subjects(trial)), "both modes leave the same last rows")


@then(
    parsers.re(
        r"(?P<what>its first new output is visible|its committed offsets reach the end of the log)"
        r" within (?P<seconds>\d+) seconds"
    )
)
def is_soon(trial: Trial, what: str, seconds: str) -> None:
    """From the moment its process is started, the runtime's boot and the reading of state in it; or
    from now on.
    """
    for application in subjects(trial):
        if what.startswith("its first"):
            trial.first_output(application, 1000 * int(seconds))
            trial.claim("recovered", application, f"{what} within {seconds} seconds")
        else:
            trial.catch_up(application, 1000 * int(seconds))
            trial.claim("caught-up", application, f"{what} within {seconds} seconds")


@then("while the input rests, its store holds every last state within the interval and 2 seconds")
def is_stored(trial: Trial) -> None:
    """Nothing more arrives: the store has to catch up."""
    for application in subjects(trial):
        trial.paused_input(
            application,
            int(application.event.parameters["persistence_interval_ms"]) + VISIBLE_WITHIN_MS,
        )
        trial.claim(
            "stored",
            application,
            "its store holds every last state within the interval and 2 seconds",
        )


@then(
    parsers.re(
        r"beside its table it keeps (?P<topics>\d+) topics? of (?P<partitions>\d+) partitions? at "
        r"most"
    )
)
def is_narrow(trial: Trial, topics: str, partitions: str) -> None:
    """What the broker has to host for it; none of it may be the table once more."""
    limits = {"topics": int(topics), "partitions": int(partitions)}
    for application in subjects(trial):
        trial.claim("footprint", application, f"beside its table it keeps {topics} topic", **limits)


@then("for every robot it answers with the last row of its table within 2 seconds")
def is_answered(trial: Trial) -> None:
    """The topic is the table: a reader of it and who asks the design see the same."""
    for application in subjects(trial):
        trial.ask_for_all(application, VISIBLE_WITHIN_MS)
        trial.claim(
            "answered", application, "for every robot it answers with the last row of its table"
        )


@then("within 4 seconds every full batch is out, and nothing else")
def is_filled(trial: Trial) -> None:
    """The threshold, while the clock is far."""
    for application in subjects(trial):
        trial.paused_input(application, FILLED_WITHIN_MS)
        trial.claim(
            "filled", application, "within 4 seconds every full batch is out, and nothing else"
        )


@then("no event waits longer than the interval and 3 seconds")
def is_in_time(trial: Trial) -> None:
    """The clock, for whoever does not reach the threshold."""
    for application in subjects(trial):
        trial.paused_input(
            application, int(application.event.parameters["interval_ms"]) + FLUSHED_WITHIN_MS
        )
        trial.claim("in-time", application, "no event waits longer than the interval and 3 seconds")


@then("nothing else changes on the broker")
def nothing_else(trial: Trial) -> None:
    """Side effects: topics and groups."""
    trial.claim("side-effects", next(subjects(trial)), "nothing else changes on the broker")
