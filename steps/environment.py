"""Broker, coordinator, store, disks, clock and topic fail or change."""

from pytest_bdd import parsers, when

from upheld.nemesis import brokers, disks, rejections, stores, topics
from upheld.nemesis.requests import out_of_reach
from upheld.steps.parameters import TYPES
from upheld.steps.scene import Scene
from upheld.verdicts import HarnessError


@when(parsers.parse("the broker restarts after a crash with a transaction open"))
def broker_restarts(scene: Scene) -> None:
    """SIGKILL the broker while a transaction is open, and start it again."""
    for application in scene.subjects():
        brokers.restart(scene.trial, application)


@when(parsers.parse("its transaction coordinator fails over with a transaction open"))
def coordinator_moves(scene: Scene) -> None:
    """SIGKILL the broker of three that coordinates an open transaction.

    Start it again when another one coordinates the transaction.
    """
    for application in scene.subjects():
        brokers.move_coordinator(scene.trial, application)


@when(parsers.parse("the broker rejects the rest of its transaction with MESSAGE_TOO_LARGE"))
def outputs_rejected(scene: Scene) -> None:
    """Lower the output topic's max.message.bytes with a transaction open.

    The limit is back when the design has given up.
    """
    for application in scene.subjects():
        rejections.refuse_outputs(scene.trial, application)


@when(parsers.parse("the broker is out of its reach for {duration:Duration}", extra_types=TYPES))
def broker_away(scene: Scene, duration: int) -> None:
    """Let instance a have no connection to a broker meanwhile."""
    trial = scene.trial
    for application in scene.subjects():
        with out_of_reach(trial, application):
            trial.waits.watch(application, trial.now_ms + duration)


@when(parsers.parse("its store is {outage:Outage} for {duration:Duration}", extra_types=TYPES))
def store_disturbed(scene: Scene, outage: str, duration: int) -> None:
    """Disturb the store, and look at the end of that at what is committed and stored."""
    for application in scene.subjects():
        stores.disturb(scene.trial, application, outage, duration)
    if scene.arrivals:
        scene.arrivals.saw_outage = True


@when(
    parsers.parse(
        "its wall clock jumps {duration:Duration} {direction:Direction}", extra_types=TYPES
    )
)
def clock_jumps(scene: Scene, duration: int, direction: str) -> None:
    """Set the wall clock of all its processes; the monotonic one goes on as ever."""
    seconds, rest_ms = divmod(duration, 1000)
    if rest_ms:
        raise HarnessError(f"a clock jumps by whole seconds, and not by {duration} ms")
    for application in scene.subjects():
        assert application.wall_clock
        application.wall_clock.jump(seconds if direction == "forward" else -seconds)
    scene.clock_jumped = True


@when(parsers.parse("its local state is wiped"))
def wiped(scene: Scene) -> None:
    """Delete the own disk of instance a while it is down."""
    for application in scene.subjects():
        disks.wipe(scene.trial, application)


@when(parsers.parse("its disks {fate:DiskFate}", extra_types=TYPES))
def befallen(scene: Scene, fate: str) -> None:
    """Copy its disks, set them back to the copy, or leave no room on them.

    The first two happen while the application is down. If an application with no room left does
    not stop loudly, it is killed.
    """
    for application in scene.subjects():
        match fate:
            case "are copied":
                disks.keep(application)
            case "are set back to the copy":
                disks.set_back(scene.trial, application)
            case _:
                disks.run_full(scene.trial, application)


@when(parsers.parse("the newest file that it reads back is torn"))
def torn(scene: Scene) -> None:
    """Leave the first half of one file while the application is down.

    The starts of earlier attempts tell which files it reads back.
    """
    for application in scene.subjects():
        disks.tear(scene.trial, application)


@when(parsers.parse("retention deletes half of its unread input"))
def fallen_off(scene: Scene) -> None:
    """Have the broker delete the first half of the records that are not committed yet."""
    for application in scene.subjects():
        topics.cut(scene.trial, application)


@when(parsers.parse("its input gets twice as many partitions"))
def grown(scene: Scene) -> None:
    """Add partitions to the input topic."""
    for application in scene.subjects():
        topics.grow(scene.trial, application)


@when(parsers.parse("its input topic is recreated"))
def made_anew(scene: Scene) -> None:
    """Delete the input topic, and create another one of that name and size."""
    for application in scene.subjects():
        topics.make_anew(scene.trial, application)


@when(parsers.parse("the log cleaner leaves less than half of its table"))
def cleaned(scene: Scene) -> None:
    """See rows come until the log cleaner has removed more than half of them."""
    for application in scene.subjects():
        scene.trial.waits.await_cleaner(application)
