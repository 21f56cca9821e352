"""The state of one application: its input, and how far it was read."""

from dataclasses import replace
from pathlib import Path

import pytest
from attempts import Attempt, timeless

from upheld.trial.application import Application, Input


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    """Make an attempt in which time passes by sleeps alone."""
    return timeless(tmp_path, monkeypatch)


def test_a_record_was_in_the_log_when_its_wave_was() -> None:
    """Records beyond the last wave, and those of no wave, count as appended now."""
    state = Input(appended={"topic-0": [(10, 100), (20, 200)]})

    appended_ms = state.appended_ms("topic", now_ms=999)

    assert [appended_ms(0, offset) for offset in (0, 9, 10, 19, 20)] == [100, 100, 200, 200, 999]
    assert appended_ms(1, 0) == 999


def test_a_topic_is_read_on_from_where_it_was_left(attempt: Attempt) -> None:
    """Each isolation level has its own position, which begins at 0."""
    application = attempt.application()

    application.position(application.reads, committed=True)[1] = 7

    assert application.position(application.reads, committed=True) == {0: 0, 1: 7}
    assert application.position(application.reads, committed=False) == {0: 0, 1: 0}


def test_partitions_that_are_added_leave_the_deployment_as_declared(attempt: Attempt) -> None:
    """The deployment says what was declared; the application says what is so now."""
    application = attempt.application()

    application.inputs[application.reads] = 4

    assert application.commits == {"trial-relay-input": 4}
    assert application.places == [f"trial-relay-input-{number}" for number in range(4)]
    assert application.deployment.inputs == {"trial-relay-input": 2}


def test_an_output_is_visible_a_while_after_its_commit(attempt: Attempt) -> None:
    """The time that is left for it is the same for each commit interval."""
    quick = attempt.application()
    slow = attempt.application(name="slow", parameters={"commit_interval_ms": 5_000})

    assert (quick.visible_ms, slow.visible_ms) == (2_100, 7_000)


def test_the_table_of_a_design_takes_the_place_of_the_output(attempt: Attempt) -> None:
    """The topic that a design makes for its table is the only output."""
    application = attempt.application()

    application.table = "changelog"

    assert (application.writes, application.outputs) == ("changelog", ("changelog",))


def test_further_outputs_are_read_too(attempt: Attempt) -> None:
    """Each is read once, also if it has the name of a dead-letter topic."""
    declared = attempt.application().deployment
    further = ("alerts", "dead_letters")
    topics = declared.event.topics | {role: f"trial-{role}" for role in further}
    application = Application(
        replace(
            declared,
            program=replace(declared.program, further=further),
            event=declared.event.model_copy(update={"topics": topics}),
        )
    )

    results = ("trial-relay-output", "trial-alerts", "trial-dead_letters")
    assert (application.results, application.outputs) == (results, results)
