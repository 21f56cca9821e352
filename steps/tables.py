"""The sentences about tables that are joined: their rows, and what befalls them."""

from collections.abc import Callable
from functools import partial

from pytest_bdd import given, parsers, step, then, when

from upheld.checks.joins import races
from upheld.generators.ledger import FLAWS, Send, unreadable
from upheld.generators.tables import Tables, facts, spoiled, written
from upheld.history.marks import Happening
from upheld.nemesis import topics
from upheld.steps.sentences import subjects
from upheld.trial.application import Application
from upheld.trial.trial import Trial
from upheld.verdicts import MarkMissed

FLAW = (
    r"(?P<flaw>with a null key|that is no JSON|with text for a number|with a number for a "
    r"text|without a field"
    f"|{'|'.join(FLAWS)})"
)
FORGOTTEN_WITHIN_MS = 2_000
RACES = {
    happening.text: happening for happening in (Happening.ROWS_GONE_SOON, Happening.ROWS_MOVED)
}
MORE_CHANGES = 400  # for designs that forget when something else comes
TIMES = 2


def write(trial: Trial, application: Application, make: Callable[[], list[Send]]) -> None:
    """Write what this makes, and more of it if more is asked for."""

    def next_wave(*, wave: int) -> list[Send]:
        del wave  # the tables know how far they are
        return make()

    trial.feed(application, next_wave, facts)


def tables_of(trial: Trial, application: Application, rows: int, partners: int) -> Tables:
    """The tables behind the application's inputs."""
    if application.tables is None:
        partitions, beside = application.inputs.values()
        size = {"rows": rows, "partners": partners, "partitions": partitions, "beside": beside}
        application.tables = Tables(trial.seed, application.program.name, **size)
    return application.tables


@step(
    parsers.re(
        r"(?P<changes>\d+) changes of (?P<rows>\d+) rows with (?P<partners>\d+) partners "
        r"(wait|arrive) in its inputs"
    )
)
def changes_wait(trial: Trial, changes: str, rows: str, partners: str) -> None:
    """Write changes of both tables in bursts, with aborted ones between them and at the end of
    every partition.
    """
    for application in subjects(trial):
        tables = tables_of(trial, application, int(rows), int(partners))
        write(trial, application, partial(tables.changes, int(changes)))


@when(
    parsers.re(
        r"(?P<what>every (row moves to another partner|row goes|row comes|partner changes|partner "
        r"goes)"
        r"|(?P<count>\d+) more rows come|they go again, while every partner changes)"
    )
)
def every(trial: Trial, what: str, count: str | None) -> None:
    """Let the same befall all of a table, or a crowd of rows beyond it."""
    for application in subjects(trial):
        tables = application.tables
        assert tables
        fates: dict[str, Callable[[], list[Send]]] = {
            "every row moves to another partner": tables.moves,
            "every row goes": tables.deletions,
            "every row comes": tables.insertions,
            "every partner changes": tables.partner_changes,
            "every partner goes": tables.partner_deletions,
            f"{count} more rows come": partial(tables.more, int(count or 0)),
            "they go again, while every partner changes": tables.no_more,
        }
        write(trial, application, fates[what])


@given(parsers.re(r"these (?P<role>[\w-]+) wait in its input:"))
def these_wait(trial: Trial, role: str, datatable: list[list[str]]) -> None:
    """Write rows as they stand in the feature; one of which the key alone is given is a
    tombstone.
    """
    for application in subjects(trial):
        sends = written(role, datatable, application.inputs[application.event.topics[role]])
        write(trial, application, lambda sends=sends: sends)  # type: ignore[misc]


@when(parsers.re(rf"a record {FLAW} arrives in its (?P<which>input|second input)"))
def flawed(trial: Trial, flaw: str, which: str) -> None:
    """Write a record that the contract does not allow."""
    for application in subjects(trial):
        role = application.program.reads if which == "input" else application.program.beside
        make = (
            partial(unreadable, trial.seed, flaw) if flaw in FLAWS else partial(spoiled, role, flaw)
        )
        write(trial, application, lambda make=make: [make()])  # type: ignore[misc]


@when(
    parsers.re(
        r"some (?P<what>rows have gone right after they came|rows have moved across the "
        r"partitions of their partners)"
    )
)
def raced(trial: Trial, what: str) -> None:
    """Mark how often the race was possible in what was written; where it never was, nothing is
    shown.
    """
    for application in subjects(trial):
        happening = RACES[what]
        count = races(trial.history, application.name)[happening]
        if not count:
            raise MarkMissed(f"of the changes that were written, no {what}")
        trial.mark(happening, times=count)


@when("it says how much it holds")
def measured(trial: Trial) -> None:
    """Record the size of its state."""
    for application in subjects(trial):
        trial.measure(application)


@then("2 seconds after deletions may be forgotten, it holds no more than twice as much")
def has_forgotten(trial: Trial) -> None:
    """Let the time pass for which deletions are remembered, have some more changes arrive, and
    measure.
    """
    for application in subjects(trial):
        tables, retention_ms = (
            application.tables,
            int(application.event.parameters["delete_retention_ms"]),
        )
        assert tables
        trial.watch(application, application.fed_ms + retention_ms)
        write(trial, application, partial(tables.changes, MORE_CHANGES))
        trial.drain(application)
        trial.measure(application, times=TIMES, within_ms=FORGOTTEN_WITHIN_MS)
        trial.claim(
            "forgotten", application, f"it holds no more than {TIMES} times as much", times=TIMES
        )


@then("the result is:")
def result_is(trial: Trial, datatable: list[list[str]]) -> None:
    """The last rows, as they stand in the feature."""
    for application in subjects(trial):
        trial.claim("result", application, "the result is", table=datatable)


@then("it has refused, or the outputs are the model's")
def refused_or_right(trial: Trial) -> None:
    """Nothing is visible, or everything is right."""
    for application in subjects(trial):
        trial.claim(
            "refused-or-right", application, "it has refused, or the outputs are the model's"
        )


@then(parsers.re("it stops loudly and names (?P<what>the record|where)"))
def stops_loudly(trial: Trial, what: str) -> None:
    """`failed` of the kind poison, with topic, partition and offset; or of any kind, with the topic
    and partition of a gap.
    """
    for application in subjects(trial):
        if what == "where":
            topics.expect_gap(trial, application)
        else:
            trial.expect_failure(application)
        check = "gap-named" if what == "where" else "named"
        trial.claim(check, application, f"it stops loudly and names {what}")
