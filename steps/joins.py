"""Tables that are joined: their rows, and what becomes of them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pytest_bdd import given, parsers, when

from upheld.checks.joins import races
from upheld.generators.ledger import Send
from upheld.generators.tables import Tables, facts, written
from upheld.history.marks import Happening
from upheld.steps.parameters import TYPES
from upheld.steps.scene import Scene
from upheld.trial.application import Application
from upheld.trial.trial import Trial
from upheld.verdicts import MarkMissed

Fate = Callable[[Tables], Callable[[], list[Send]]]

ROW_FATES: Final[Mapping[str, Fate]] = {
    "moves to another partner": lambda tables: tables.moves,
    "is deleted": lambda tables: tables.deletions,
}
PARTNER_FATES: Final[Mapping[str, Fate]] = {
    "changes": lambda tables: tables.partner_changes,
    "is deleted": lambda tables: tables.partner_deletions,
}
RACES: Final = {
    "deletions right after insertions": Happening.ROWS_GONE_SOON,
    "moves across the partitions of partners": Happening.ROWS_MOVED,
}


def write(trial: Trial, application: Application, make: Callable[[], list[Send]]) -> None:
    """Write what this makes, and more of it if more is asked for."""

    def next_wave(*, wave: int) -> list[Send]:
        del wave  # the tables know how far they are
        return make()

    trial.workload.feed(application, next_wave, facts)


def tables_of(trial: Trial, application: Application, rows: int, partners: int) -> Tables:
    """Return the tables behind the application's inputs."""
    if application.tables is None:
        partitions, beside = application.inputs.values()
        size = {"rows": rows, "partners": partners, "partitions": partitions, "beside": beside}
        application.tables = Tables(trial.seed, application.program.name, **size)
    return application.tables


@given(
    parsers.parse(
        "{changes:d} changes of {rows:d} rows and {partners:d} partners are in its inputs",
        extra_types=TYPES,
    )
)
def changes_are_there(scene: Scene, changes: int, rows: int, partners: int) -> None:
    """Write changes of both tables before anything starts."""
    changes_arrive(scene, changes, rows, partners)


@when(
    parsers.parse(
        "{changes:d} changes of {rows:d} rows and {partners:d} partners arrive",
        extra_types=TYPES,
    )
)
def changes_arrive(scene: Scene, changes: int, rows: int, partners: int) -> None:
    """Write changes of both tables in bursts.

    Aborted ones are between them, and at the end of every partition.
    """
    for application in scene.subjects():
        tables = tables_of(scene.trial, application, rows, partners)
        write(scene.trial, application, partial(tables.changes, changes))


@given(parsers.parse("these {role:Role} are in its input:", extra_types=TYPES))
def these_are_there(scene: Scene, role: str, datatable: list[list[str]]) -> None:
    """Write rows as they stand in the feature; one with a key alone is a tombstone."""
    for application in scene.subjects():
        sends = written(role, datatable, application.inputs[application.event.topics[role]])
        _write_same(scene.trial, application, sends)


def _write_same(trial: Trial, application: Application, sends: list[Send]) -> None:
    write(trial, application, lambda: sends)


@when(parsers.parse("every row {fate:RowFate}", extra_types=TYPES))
def every_row(scene: Scene, fate: str) -> None:
    """Let the same befall all rows."""
    _befall(scene, ROW_FATES[fate])


@when(parsers.parse("every partner {fate:PartnerFate}", extra_types=TYPES))
def every_partner(scene: Scene, fate: str) -> None:
    """Let the same befall all partners."""
    _befall(scene, PARTNER_FATES[fate])


@when(parsers.parse("{count:d} more rows arrive", extra_types=TYPES))
def more_rows(scene: Scene, count: int) -> None:
    """Insert a crowd of rows beyond those of the workload."""
    _befall(scene, lambda tables: partial(tables.more, count))


@when(parsers.parse("those rows are deleted while every partner changes"))
def no_more_rows(scene: Scene) -> None:
    """Delete the crowd, each deletion between changes of partners."""
    _befall(scene, lambda tables: tables.no_more)


def _befall(scene: Scene, fate: Fate) -> None:
    for application in scene.subjects():
        assert application.tables
        write(scene.trial, application, fate(application.tables))


@when(parsers.parse("the changes hold {race:Race}", extra_types=TYPES))
def raced(scene: Scene, race: str) -> None:
    """Mark how often the race was possible in what was written.

    Raises:
        MarkMissed: It never was, so nothing is shown.
    """
    happening = RACES[race]
    for application in scene.subjects():
        count = races(scene.trial.history, application.name)[happening]
        if not count:
            raise MarkMissed(f"of the changes that were written, no {race}")
        scene.trial.mark(happening, times=count)


@when(parsers.parse("the size of its state is measured"))
def measured(scene: Scene) -> None:
    """Record how much state it holds by its own word."""
    for application in scene.subjects():
        scene.trial.waits.measure(application)


@when(parsers.parse("the delete retention passes"))
def retention_passes(scene: Scene) -> None:
    """Let the time pass for which deletions are remembered, from the last record on."""
    for application in scene.subjects():
        retention_ms = int(application.event.parameters["delete_retention_ms"])
        scene.trial.waits.watch(application, application.input.fed_ms + retention_ms)
