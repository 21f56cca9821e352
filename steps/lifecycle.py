"""Instances start, drain their input, stop, join and leave."""

from collections.abc import Callable
from functools import partial
from typing import Final

from pytest_bdd import parsers, when

from upheld.history.events import Release
from upheld.injectors.clock import WallClock
from upheld.nemesis import disks, membership, releases
from upheld.protocol.messages import MODES
from upheld.steps.parameters import TYPES, milliseconds
from upheld.steps.scene import Restarts, Scene
from upheld.trial.application import Application
from upheld.trial.instances import Launch

STANDBY = "green"
FIRST = "the first cluster"
TAKEN_OVER_WITHIN_MS = (
    5_000  # from the order on: half of the 10 seconds that the article's service level allows
)
WENT_ON_WITHIN_MS = 10_000  # from the death on: half of what a start with nothing prepared may take

RELEASES: Final[dict[str, Release]] = {
    "the earlier release": "earlier",
    "the later release": "later",
}
COMMIT_INTERVAL: Final = "with a commit interval of "
RESTARTED_ONCE = {Restarts.AFTER_LOUD_STOP, Restarts.UNLESS_IT_REFUSES}

Act = Callable[[Application, str], object]


@when(parsers.parse("{actor:Actor} starts", extra_types=TYPES))
def starts(scene: Scene, actor: str) -> None:
    """Start instance a."""
    for application in scene.subjects(actor):
        _prepare(scene, application)
        if actor in RELEASES:
            releases.take_over(scene.trial, application, RELEASES[actor])
        else:
            scene.trial.instances.start(application)


@when(parsers.parse("{actor:Actor} starts {how:Start}", extra_types=TYPES))
def starts_otherwise(scene: Scene, actor: str, how: str) -> None:
    """Start instance a in view, with another setting, or where it may refuse to."""
    interval = how.removeprefix(COMMIT_INTERVAL)
    launch = Launch(
        cold=how == "with nothing prepared",
        default_mode=how == "with no mode set",
        may_refuse=how == "unless it refuses",
        release=RELEASES.get(actor),
        mode=next((mode for mode in MODES if how == f"in mode {mode}"), None),
        commit_interval_ms=None if interval == how else milliseconds(interval),
    )
    for application in scene.subjects(actor):
        _prepare(scene, application)
        if not releases.start(scene.trial, application, launch):
            scene.refused.add(application.name)


@when(parsers.parse("the application starts on the torn disk"))
def starts_torn(scene: Scene) -> None:
    """Start instance a on the disk with the torn file.

    If it stops loudly, its disks are set back to the copy, and it starts again.
    """
    for application in scene.subjects():
        _prepare(scene, application)
        disks.start_torn(scene.trial, application)


def _prepare(scene: Scene, application: Application) -> None:
    application.is_supervised = scene.deployment.restarts in RESTARTED_ONCE
    if scene.deployment.has_settable_clock and application.wall_clock is None:
        application.wall_clock = WallClock(application.directory)
    if not application.input.wave:  # what an instance upstream wrote meanwhile
        scene.trial.workload.look_at_input(application)


@when(parsers.parse("{actor:Actor} drains its input", extra_types=TYPES))
def drains(scene: Scene, actor: str) -> None:
    """Wait until the records that have arrived are committed.

    There is nothing to wait for if the application refused to start.
    """
    trial = scene.trial
    may_refuse = scene.deployment.restarts is Restarts.UNLESS_IT_REFUSES
    for application in scene.subjects(actor):
        if application.name in scene.refused:
            continue
        if not application.is_supervised:
            trial.waits.drain(application)
        elif not trial.waits.drain_again(application, may_refuse=may_refuse):
            scene.refused.add(application.name)


@when(parsers.parse("the application stays idle for {duration:Duration}", extra_types=TYPES))
def stays_idle(scene: Scene, duration: int) -> None:
    """Record what it does with nothing to do; it has drained its input before."""
    trial = scene.trial
    for application in scene.subjects():
        trial.waits.watch(application, trial.now_ms + duration)
        trial.probes.look_at_effects(application)


@when(parsers.parse("the application is stopped gracefully"))
def stopped(scene: Scene) -> None:
    """Ask instance a to close; what it applied is committed."""
    for application in scene.subjects():
        scene.trial.instances.stop(application)
        scene.trial.waits.settle(application)


@when(parsers.parse("the application is told to stop, twice if it is reusable"))
def stopped_twice(scene: Scene) -> None:
    """Ask instance a to close, and ask again when it has.

    Some of its input has to be left for later.
    """

    def look(application: Application) -> None:
        scene.trial.waits.settle(application)
        scene.trial.workload.mark_unread(application)

    for application in scene.subjects():
        scene.trial.instances.stop(application, twice=True)
        scene.when_nothing_arrives(partial(look, application))


@when(parsers.parse("instance {instance:Instance} {change:Change}", extra_types=TYPES))
def instance_changes(scene: Scene, instance: str, change: str) -> None:
    """Start, stop or kill an instance.

    The step ends when the running instances share the input.
    """
    does: dict[str, Act] = {
        "joins": scene.trial.instances.start,
        "joins as the later release": partial(releases.join, scene.trial),
        "leaves": scene.trial.instances.stop,
        "is killed": partial(membership.lose, scene.trial, within_ms=WENT_ON_WITHIN_MS),
    }
    for application in scene.subjects():
        does[change](application, instance)
        membership.share(scene.trial, application)


@when(parsers.parse("instances change back to back:"))
def instances_change(scene: Scene, datatable: list[list[str]]) -> None:
    """Do each change at once after the one before.

    The step ends when the running instances share the input.
    """
    does: dict[str, Act] = {
        "joins": scene.trial.instances.start,
        "leaves": scene.trial.instances.stop,
        "is killed": scene.trial.instances.kill,
    }
    for application in scene.subjects():
        for instance, change in datatable:
            does[change](application, instance)
        membership.share(scene.trial, application)


@when(parsers.parse("two deployments run under the same ids for at most 10 seconds"))
def deployed_twice(scene: Scene) -> None:
    """Start it with the same settings and other disks.

    The two have 10 seconds to notice; both are ended then.
    """
    for application in scene.subjects():
        membership.start_another(scene.trial, application)


@when(parsers.parse("{cluster:Cluster} stands by", extra_types=TYPES))
def stands_by(scene: Scene, cluster: str) -> None:
    """Start an instance of a cluster beside the other one.

    The first cluster has the disks that it had before.
    """
    is_first = cluster == FIRST
    launch = Launch(apart=not is_first, cluster="" if is_first else STANDBY, stands_by=True)
    for application in scene.subjects():
        scene.trial.instances.start(application, "a" if is_first else STANDBY, launch)


@when(parsers.parse("{cluster:Cluster} takes over", extra_types=TYPES))
def taken_over(scene: Scene, cluster: str) -> None:
    """Tell the cluster that works to hand over, and the other one to go on from there.

    The one that handed over is ended then. The first cluster is back within its session.
    """
    switch = membership.switch_back if cluster == FIRST else membership.switch_clusters
    for application in scene.subjects():
        switch(scene.trial, application, TAKEN_OVER_WITHIN_MS)
