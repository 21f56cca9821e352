"""Acts on instances beside others: deaths, a second deployment, a switch."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain

import psutil

from upheld.history import events
from upheld.history.marks import Happening, Look
from upheld.kafka.groups import Member
from upheld.protocol.capabilities import Capability
from upheld.protocol.messages import Deactivated, Message, Ready, WorkersReply
from upheld.supervisor.instance import Instance, Overdue, Silence
from upheld.supervisor.stat import DEAD, stats
from upheld.trial.application import Application
from upheld.trial.instances import Launch
from upheld.trial.trial import Trial
from upheld.verdicts import AdapterBreach, MarkMissed, Violated

MOVES = 3  # how often all of a shared input is seen to move on
NOTICED_S = 10.0  # two deployments under the same ids have noticed by then
BESIDE_MS = 1_000  # how long two clusters run beside each other before one takes over, and after it


def kill_worker(trial: Trial, application: Application, which: str) -> None:
    """SIGKILL the oldest worker of instance a when all of them are there, and mark it.

    Args:
        trial: The attempt.
        application: The application that instance a runs.
        which: The name of the worker in the mark, such as `another worker`.

    Raises:
        Violated: The instance does not have all of its workers in time.
        AdapterBreach: It names a process that cannot be its worker.
    """
    there: list[psutil.Process] = []

    def complete() -> bool:
        nonlocal there
        trial.monitor.tick(application)
        instance = application.running["a"]
        reply = instance.workers()
        if not isinstance(reply, WorkersReply):
            raise AdapterBreach(f"{trial.manifest.name} answered workers with an error: {reply}")
        there = _workers(trial, instance, reply.pids)
        return len(there) >= application.workers

    if not trial.recorder.wait(trial.rig.progress_s, complete):
        raise Violated.one(
            "stuck",
            f"{trial.manifest.name} has {len(there)} workers, and was to have "
            f"{application.workers}",
        )
    struck = min(there, key=psutil.Process.create_time)
    struck.kill()
    trial.instances.kills += 1
    said = Happening.WORKER_KILLED.text.format(which=which)
    trial.mark(Happening.WORKER_KILLED, said, pid=struck.pid, of=[process.pid for process in there])


def _workers(trial: Trial, instance: Instance, pids: Iterable[int]) -> list[psutil.Process]:
    """Return the named processes that live.

    Raises:
        AdapterBreach: A process is none of the instance's, so it is not to be killed.
    """
    own = set(instance.pids(pids))
    living = {pid for pid, row in stats().items() if row.state not in DEAD}
    foreign = living.intersection(pids) - own
    if foreign:
        raise AdapterBreach(
            f"{trial.manifest.name} names process {min(foreign)} as a worker, which is no process "
            "of this instance"
        )
    return [psutil.Process(pid) for pid in pids if pid in own & living]


def lose(trial: Trial, application: Application, name: str, within_ms: int) -> None:
    """SIGKILL an instance beside others, and mark when all of the input moves on.

    Args:
        trial: The attempt.
        application: The application whose instances run.
        name: The instance that dies.
        within_ms: The time that is promised, from the death on.
    """
    trial.waits.demand_quick(application, within_ms)
    before = _position(trial, application, stable=False) or {}
    trial.mark(Happening.MEMBER_DIED)
    since_ms = trial.now_ms
    trial.instances.kill(application, name)
    trial.waits.recovers(
        application, since_ms, within_ms, lambda: _moved_on(trial, application, before) is not None
    )


def share(trial: Trial, application: Application) -> None:
    """Wait until all instances share the input and all of it moves on; mark that.

    The consumer group says which member holds what of the inputs; topics of the design's own are no
    matter. An instance may have several members. If there are more instances than partitions, the
    rest holds nothing.

    Raises:
        NotOffered: The design names no consumer group.
        Violated: The input is not shared, or does not move on, in time.
    """
    trial.probes.demand_group(application, "who holds what")
    sharing = _Sharing(trial, application)
    if not sharing.is_reached():
        raise Violated.one(
            "stuck",
            f"{len(application.running)} instances of {trial.manifest.name} run, and "
            f"{sharing.state}",
        )
    trial.mark(Happening.INPUT_SHARED, held=sharing.held)


class _Sharing:
    """What is seen of instances that are to share the input of an application."""

    def __init__(self, trial: Trial, application: Application) -> None:
        self._trial = trial
        self._application = application
        self._busy = min(len(application.running), len(application.places))
        self._before: events.Offsets = {}
        self.held: list[tuple[str, ...]] | None = None

    @property
    def state(self) -> str:
        """Return how far they have come."""
        if self._before:
            return f"its offsets rest at {self._before}"
        return f"its members hold {self.held}"

    def is_reached(self) -> bool:
        """Wait until the members share the input and all of it has moved on.

        Return whether it has.
        """
        # A dead member may hold its part until the input that it held has moved on.
        steps = (self._is_agreed, *(self._has_moved for _ in range(MOVES)), self._is_agreed)
        within_s = self._trial.rig.progress_s
        return all(self._trial.recorder.wait(within_s, step) for step in steps)

    def holds_of_members(self) -> bool:
        """Return whether members of the group hold the input, each partition once."""
        places = self._application.places
        held = self.held or []
        return sum(map(bool, held)) >= self._busy and sorted(chain(*held)) == places

    def _is_agreed(self) -> bool:
        trial = self._trial
        application = self._application
        trial.monitor.tick(application)
        trial.probes.observe(application)
        members = trial.reading.groups.members(application.group or "", application.places)
        if members is None:
            self.held = None
            return False
        self.held = [member.inputs for member in members]
        return _assigns_by_itself(members) or self.holds_of_members()

    def _has_moved(self) -> bool:
        now = _moved_on(self._trial, self._application, self._before)
        self._before = now or self._before
        return now is not None


def _assigns_by_itself(members: list[Member]) -> bool:
    """Return whether no member takes its inputs from the group: its outputs say who wrote them.

    There are no members then, or they hold topics of the design's own alone.
    """
    holds_inputs = any(member.inputs for member in members)
    return not holds_inputs and (not members or any(member.others for member in members))


def start_another(trial: Trial, application: Application) -> None:
    """Start a second deployment under the ids of the first, and end both.

    They run until one of them has noticed the other, or for 10 seconds. If none has by then, it is
    seen whether the second one is one more instance. A design with an adapter that does not declare
    `scale` says that it runs as one; an application without an adapter has said nothing.
    """
    running = application.running
    first = running["a"]
    launch = Launch(in_place_of="a", apart=True, may_refuse=True)
    second = trial.instances.start(application, "b", launch)
    if second is None:
        trial.instances.let_go(application, "b")

    def stopped() -> list[str]:
        return [name for name, instance in running.items() if instance.is_over]

    trial.recorder.wait(NOTICED_S, lambda: second is None or bool(stopped()))
    for name in stopped():
        if running[name].failed is None:
            trial.monitor.tick(application)
        trial.instances.gave_up(application, name)
    trial.mark(
        Happening.SECOND_DEPLOYMENT,
        second_refused=second is None,
        first_failed=bool(first.failed),
    )
    may_share = Capability.SCALE in trial.manifest.capabilities or trial.manifest.application
    if len(running) > 1 and may_share and application.group:
        sharing = _Sharing(trial, application)
        if sharing.is_reached() and sharing.holds_of_members():
            trial.mark(Happening.INPUT_SHARED, held=sharing.held)
    for name in list(running):
        trial.instances.kill(application, name)
    trial.waits.settle(application)


def switch_clusters(trial: Trial, application: Application, within_ms: int) -> None:
    """Let the standby cluster take over, and mark when its first output is visible.

    Args:
        trial: The attempt.
        application: The application; instance a runs it, and instance green stands by.
        within_ms: The time that is promised, from the order on.

    Raises:
        Violated: The new cluster has no output or does not take over, or a cluster does not answer
            the order.
        AdapterBreach: The old cluster answers the order with an error.
    """
    trial.waits.watch(application, trial.now_ms + BESIDE_MS)
    _switch(trial, application, "a", "green", within_ms)


def switch_back(trial: Trial, application: Application, within_ms: int) -> None:
    """Let the first cluster take over again, while its last member's session lasts.

    Args:
        trial: The attempt.
        application: The application; instance green runs it, and instance a stands by.
        within_ms: The time that is promised, from the order on.

    Raises:
        MarkMissed: The session was over before the order.
        Violated: The first cluster has no output, or does not take over.
        AdapterBreach: The second cluster answers the order with an error.
    """
    left_ms = max(
        each.at_ms
        for each in trial.history.of(events.Instance)
        if (each.name, each.event) == ("a", "inactive")
    )
    away_ms = trial.now_ms - left_ms
    if away_ms >= (application.session_timeout_ms or trial.rig.session_timeout_ms):
        raise MarkMissed(f"the first cluster was away for {away_ms} ms, longer than its session")
    _switch(trial, application, "green", "a", within_ms)


def _switch(
    trial: Trial, application: Application, old_name: str, new_name: str, within_ms: int
) -> None:
    old = application.running[old_name]
    new = application.running[new_name]
    trial.mark(Happening.CLUSTERS_SWITCHED)
    handed_over = _in_time(trial, old.deactivate)
    if not isinstance(handed_over, Deactivated):
        raise AdapterBreach(
            f"{trial.manifest.name} answered deactivate with an error: {handed_over}"
        )
    trial.recorder.happened(application, old_name, "inactive", str(handed_over.emitted_through))
    trial.probes.ends(application, Look.HANDED_OVER)
    trial.probes.observe(application)
    known = trial.probes.outputs_seen(application)
    ready = _in_time(trial, partial(new.activate, handed_over.emitted_through))
    if not isinstance(ready, Ready):
        raise Violated.one(
            "stuck",
            f"another cluster of {trial.manifest.name} does not take over, and answers: {ready}",
        )
    trial.recorder.happened(application, new_name, "active", ready=ready)
    application.group = ready.consumer_group
    trial.waits.first_output(application, within_ms, known)

    def goes_on() -> bool:
        trial.monitor.tick(application)
        trial.probes.observe(application)
        return trial.probes.outputs_seen(application) > known

    if not trial.recorder.wait(trial.rig.progress_s, goes_on):
        raise Violated.one(
            "stuck",
            f"no output is visible since another cluster of {trial.manifest.name} took over",
        )
    trial.waits.watch(application, trial.now_ms + BESIDE_MS)
    trial.instances.stop(application, old_name)


def _in_time(trial: Trial, order: Callable[[], Message]) -> Message:
    """Give a cluster an order, and return its answer.

    Raises:
        Violated: It does not answer by the deadline, or ends.
    """
    try:
        return order()
    except Overdue as overdue:
        raise Violated.one("late", f"{trial.manifest.name} is late: {overdue}") from None
    except Silence as silence:
        raise Violated.one("stuck", f"{trial.manifest.name} does not switch: {silence}") from None


def _position(
    trial: Trial, application: Application, *, stable: bool = True
) -> events.Offsets | None:
    """Return how far the outputs are: by the committed offsets, or else by what is visible."""
    if application.progress_group is None:
        return trial.probes.reached(application)
    return trial.probes.committed(application, stable=stable)


def _moved_on(
    trial: Trial, application: Application, before: events.Offsets
) -> events.Offsets | None:
    """Return the position, if it moved on in every partition that is fed."""
    trial.monitor.tick(application)
    trial.probes.observe(application)
    now = _position(trial, application)
    fed = (
        place
        for place in application.places
        if place.rpartition("-")[0] in application.input.topics
    )
    return now if now and all(now[place] > before.get(place, -1) for place in fed) else None
