"""Instances are killed or paused at a moment, and a successor takes their place."""

from functools import partial

from pytest_bdd import parsers, when

from upheld.history.marks import Look
from upheld.injectors.proxy.errors import Moment as Side
from upheld.nemesis import disks, membership, pauses
from upheld.nemesis.moments import MOMENTS, pause_at
from upheld.nemesis.requests import Strike, arrive, strike_at
from upheld.steps.lifecycle import WENT_ON_WITHIN_MS
from upheld.steps.parameters import BEFORE_ITS_OFFSETS, TYPES
from upheld.steps.scene import Restarts, Scene
from upheld.trial.application import Application
from upheld.trial.instances import Launch
from upheld.trial.trial import Trial
from upheld.trial.waits import SETTLE_S
from upheld.verdicts import HarnessError


@when(parsers.parse("{actor:Actor} is killed {moment:Moment}", extra_types=TYPES))
def killed_at(scene: Scene, actor: str, moment: str) -> None:
    """SIGKILL every process of instance a at that moment."""
    for application in scene.subjects(actor):
        pause_at(scene.trial, application, MOMENTS[moment](scene.trial, application))
        scene.trial.instances.kill(application)
        _after_the_death(scene, application)


@when(
    parsers.parse(
        "the application is killed {side:Side} its next {request:Request}", extra_types=TYPES
    )
)
def killed_at_a_request(scene: Scene, side: Side, request: str) -> None:
    """SIGKILL every process of instance a at a request.

    Before: the broker never receives it. After: the broker has applied it, and nobody reads the
    response.
    """
    for application in scene.subjects():
        rule = strike_at(scene.trial, application, Strike("hold", side, request))
        scene.trial.instances.kill(application)
        scene.trial.rig.open_proxy().release(rule, is_lost=True)
        _after_the_death(scene, application)


def _after_the_death(scene: Scene, application: Application) -> None:
    """Record what readers of committed data have of a killed application.

    A transaction that was left open is the successor's to settle. If that starts at once, or never
    does, how long readers wait is measured.
    """
    trial = scene.trial
    restarts = scene.deployment.restarts
    if restarts in {Restarts.AFTER_DEATH, Restarts.AFTER_DEATH_ON_EMPTY_DISK}:
        if restarts is Restarts.AFTER_DEATH_ON_EMPTY_DISK:
            disks.wipe(trial, application)
        released_ms = trial.waits.watch_release(application)
        trial.instances.start(application)
        trial.waits.settle(application, waited_ms=released_ms.result())
        return
    is_decided = restarts is Restarts.NEVER
    scene.when_nothing_arrives(partial(trial.waits.settle, application, until_decided=is_decided))


@when(
    parsers.parse(
        "the application is killed with its next {request:Request} on the way", extra_types=TYPES
    )
)
def killed_with_a_request_on_the_way(scene: Scene, request: str) -> None:
    """SIGKILL every process of instance a with its request on the way.

    The broker does not receive the request until a line lets it arrive.
    """
    for application in scene.subjects():
        rule = strike_at(scene.trial, application, Strike("hold", "before", request))
        scene.trial.instances.kill(application)
        scene.delayed[application.name, request] = rule


@when(parsers.parse("the delayed {request:Request} arrives", extra_types=TYPES))
def arrives_late(scene: Scene, request: str) -> None:
    """Let the broker have the request of the killed instance."""
    for application in scene.subjects():
        rule = scene.delayed.pop((application.name, request), None)
        if rule is None:
            raise HarnessError(f"no {request} of {application.name} is on its way")
        arrive(scene.trial, rule)
        scene.trial.waits.settle(application)


@when(parsers.parse("the application is paused with a transaction open"))
def paused(scene: Scene) -> None:
    """SIGSTOP every process of instance a before its transaction has offsets."""
    for application in scene.subjects():
        pause_at(scene.trial, application, MOMENTS[BEFORE_ITS_OFFSETS](scene.trial, application))


@when(parsers.parse("the application is paused until the broker aborts its transaction"))
def slept_through(scene: Scene) -> None:
    """SIGSTOP every process of instance a until its transaction is aborted."""
    for application in scene.subjects():
        pauses.sleep_through_abort(scene.trial, application)


@when(parsers.parse("a successor takes its place"))
def succeeded(scene: Scene) -> None:
    """Start instance b under the name of instance a."""
    for application in scene.subjects():
        scene.trial.instances.start(application, "b", Launch(in_place_of="a"))


@when(parsers.parse("the successor drains its input"))
def successor_drains(scene: Scene) -> None:
    """Wait until instance b has committed all of the input.

    A transaction may still be open on the outputs.
    """
    for application in scene.subjects():
        zombie = application.running.pop("a", None)
        scene.trial.waits.drain(application, outputs_too=False)
        if zombie:
            application.running["a"] = zombie


@when(parsers.parse("the paused instance goes on"))
def goes_on(scene: Scene) -> None:
    """SIGCONT the zombie, and give it the settle time to emit, or to end itself."""
    for application in scene.subjects():
        _let_the_zombie_go_on(scene.trial, application)


def _let_the_zombie_go_on(trial: Trial, application: Application) -> None:
    zombie = application.running["a"]
    trial.probes.ends(application, Look.BEFORE_ZOMBIE)
    trial.waits.zombie(application, zombie)
    # Nothing may follow within the settle time, whether it lives or not.
    trial.recorder.wait(SETTLE_S, lambda: False)
    del application.running["a"]
    ended = (
        f"{zombie.failed.kind}: {zombie.failed.message}"
        if zombie.failed
        else f"exit {zombie.exit_code}"
    )
    zombie.kill()
    trial.recorder.happened(application, "a", "killed", f"after the settle time; {ended}")
    trial.waits.settle(application)


@when(parsers.parse("instance a is killed {moment:Moment}", extra_types=TYPES))
def lost_at(scene: Scene, moment: str) -> None:
    """SIGKILL an instance beside others at that moment.

    The step ends when the others share the input.
    """
    for application in scene.subjects():
        pause_at(scene.trial, application, MOMENTS[moment](scene.trial, application))
        membership.lose(scene.trial, application, "a", within_ms=WENT_ON_WITHIN_MS)
        membership.share(scene.trial, application)


@when(parsers.parse("{worker:Worker} is killed", extra_types=TYPES))
def worker_killed(scene: Scene, worker: str) -> None:
    """SIGKILL the oldest worker of an instance; wait until all of the input moves on."""
    for application in scene.subjects():
        membership.kill_worker(scene.trial, application, worker)
        membership.share(scene.trial, application)
