"""The application and its deployment: described here, declared on first use."""

from collections.abc import Callable
from typing import Final, get_args

from pytest_bdd import given, parsers

from upheld.protocol.messages import GroupProtocol, Mode
from upheld.steps.parameters import TYPES, amount, milliseconds
from upheld.steps.scene import Restarts, Scene
from upheld.verdicts import HarnessError

SEGMENT_MS: Final = 1_000  # of a table that rolls
# How long a transaction lasts if an instance that comes back is to find it open.
TWICE_ITS_START: Final = "twice its start"


def _parameter(scene: Scene, name: str, value: int | str) -> None:
    scene.describe(parameters={**scene.deployment.parameters, name: value})


def _duration(name: str) -> Callable[[Scene, str], None]:
    def set_duration(scene: Scene, value: str) -> None:
        _parameter(scene, name, milliseconds(value))

    return set_duration


def _rolled(scene: Scene, value: str) -> None:
    if milliseconds(value) != SEGMENT_MS:
        raise HarnessError(f"a table has segments of {SEGMENT_MS} ms, and not of {value}")
    scene.describe(is_rolled=True)


def _timeout(scene: Scene, value: str) -> None:
    if value == TWICE_ITS_START:
        scene.describe(outlives_start=True)
    else:
        scene.describe(transaction_timeout_ms=milliseconds(value))


def _protocol(scene: Scene, value: str) -> None:
    known = {each: each for each in get_args(GroupProtocol)}
    if value not in known:
        raise HarnessError(f"{value} is no protocol of groups; there are {', '.join(known)}")
    scene.describe(group_protocol=known[value])


def _number(field: str) -> Callable[[Scene, str], None]:
    return lambda scene, value: scene.describe(**{field: int(value)})


# The names in the table `its configuration is:`, and what each sets.
SETTINGS: Final[dict[str, Callable[[Scene, str], None]]] = {
    "partitions": _number("partitions"),
    "partitions of the second input": _number("second_partitions"),
    "commit interval": _duration("commit_interval_ms"),
    "transaction timeout": _timeout,
    "session timeout": lambda scene, value: scene.describe(session_timeout_ms=milliseconds(value)),
    "group protocol": _protocol,
    "batch size": lambda scene, value: _parameter(scene, "threshold", amount(value, "records")),
    "batch interval": _duration("interval_ms"),
    "delete retention": _duration("delete_retention_ms"),
    "state store": lambda scene, value: _parameter(scene, "store", value),
    "persistence interval": _duration("persistence_interval_ms"),
    "segments of its table": _rolled,
    "disk size": lambda scene, value: scene.describe(disk_mb=amount(value, "MB")),
}

RESTARTS: Final = {
    "once if it stops loudly while it drains": Restarts.AFTER_LOUD_STOP,
    "once if it stops loudly, unless it refuses": Restarts.UNLESS_IT_REFUSES,
    "as soon as it is killed": Restarts.AFTER_DEATH,
    "on an empty disk as soon as it is killed": Restarts.AFTER_DEATH_ON_EMPTY_DISK,
}


@given(parsers.parse("{program:Program} in mode {mode:Mode}", extra_types=TYPES))
def runs(scene: Scene, program: str, mode: Mode) -> None:
    """Say which program runs in which mode, or of which shape it is."""
    scene.describe(program=program, mode=mode)


@given(parsers.parse("its configuration is:"))
def configured(scene: Scene, datatable: list[list[str]]) -> None:
    """Set the numbers of the set-up, one a row; others are as usual."""
    for name, value in datatable:
        if name not in SETTINGS:
            raise HarnessError(f"{name} is no setting; there are {', '.join(SETTINGS)}")
        SETTINGS[name](scene, value)


@given(parsers.parse("it runs in {layout:Layout}", extra_types=TYPES))
def laid_out(scene: Scene, layout: str) -> None:
    """Let instances share the input, or a second cluster of instances stand by."""
    if layout == "several instances":
        scene.describe(is_several=True)
    else:
        scene.describe(in_clusters=True)


@given(parsers.parse("it runs on {count:d} workers", extra_types=TYPES))
def on_workers(scene: Scene, count: int) -> None:
    """Let processes share the work of the instance."""
    scene.describe(workers=count)


@given(parsers.parse("a relay in mode {mode:Mode} feeds it", extra_types=TYPES))
def fed_by_a_relay(scene: Scene, mode: Mode) -> None:
    """Put the design's own relay upstream: its output is the application's input."""
    scene.describe(relay_mode=mode)


@given(
    parsers.parse(
        "a second application runs the same program in mode {mode:Mode}", extra_types=TYPES
    )
)
def beside(scene: Scene, mode: Mode) -> None:
    """Run the same program once more, on topics of its own."""
    scene.describe(second_mode=mode)


@given(parsers.parse("it reports its lag"))
def reports_lag(scene: Scene) -> None:
    """Ask it all along how far it is behind."""
    scene.describe(reports_lag=True)


@given(parsers.parse("it has a side effect outside of Kafka for each output"))
def has_side_effects(scene: Scene) -> None:
    """Let it report each output outside of Kafka."""
    _parameter(scene, "effects", 1)


@given(parsers.parse("it has a dead-letter topic"))
def has_dead_letters(scene: Scene) -> None:
    """Give it a topic for the records that it cannot read."""
    scene.describe(has_dead_letters=True)


@given(parsers.parse("its wall clock can be set"))
def has_settable_clock(scene: Scene) -> None:
    """Start its processes under a wall clock of the harness's."""
    scene.describe(has_settable_clock=True)


@given(parsers.parse("its supervisor restarts it {restart:Restart}", extra_types=TYPES))
def restarted(scene: Scene, restart: str) -> None:
    """Start it again by itself.

    That happens if it gives up while it drains its input, or as soon as it is killed. The disk that
    may be empty then is its own.
    """
    scene.describe(restarts=RESTARTS[restart])


@given(parsers.parse("it never comes back"))
def never_restarted(scene: Scene) -> None:
    """Leave what it left open to the broker."""
    scene.describe(restarts=Restarts.NEVER)
