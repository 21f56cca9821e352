"""The topics and the store of an application that a scenario declares."""

from pathlib import Path
from typing import Any

import pytest
from attempts import Attempt, timeless

from upheld.history.events import Application
from upheld.protocol.messages import OffsetsMean
from upheld.trial.deployment import Declaration, Deployments
from upheld.verdicts import NotOffered


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    """Make an attempt in which time passes by sleeps alone."""
    return timeless(tmp_path, monkeypatch)


def test_each_role_has_a_topic_of_its_own(attempt: Attempt) -> None:
    """A second input has its own number of partitions, the output that of the first."""
    attempt.application("clients", beside=3, name="mine")

    ((topics, _),) = attempt.created
    assert topics == {
        "trial-mine-client-positions": 2,
        "trial-mine-client-details": 3,
        "trial-mine-joined": 2,
    }


def test_an_input_that_exists_is_not_made(attempt: Attempt) -> None:
    """The input of an application downstream is the output of the one upstream."""
    deployments = Deployments(attempt.recorder, attempt.rig, attempt.manifest, "trial")

    deployment = deployments.declare(Declaration("ledger", "exactly_once", 2), "its-output")

    assert attempt.created == [
        ({"trial-ledger-balances": 2}, {"stamped": set(), "compacted": set(), "rolling": set()})
    ]
    assert deployment.event.topics["entries"] == "its-output"
    assert deployment.inputs == {"its-output": 2}


@pytest.mark.parametrize(
    ("program", "said", "cleanup"),
    [
        ("relay", {}, {}),
        ("batcher", {}, {"stamped": {"trial-batcher-batches"}}),
        ("pulse", {}, {"compacted": {"trial-pulse-frequency"}}),
        ("relay", {"rolls": True}, {"rolling": {"trial-relay-output"}}),
    ],
)
def test_a_table_is_cleaned_as_its_program_wants(
    attempt: Attempt, program: str, said: dict[str, Any], cleanup: dict[str, set[str]]
) -> None:
    """Outputs that are held back are stamped, and merged ones compacted."""
    attempt.application(program, **said)

    ((_, found),) = attempt.created
    assert {name: topics for name, topics in found.items() if topics} == cleanup


def test_records_that_cannot_be_read_have_a_topic_if_declared(attempt: Attempt) -> None:
    """A topic of dead letters has the partitions of the outputs."""
    application = attempt.application(has_dead_letters=True)

    assert application.outputs == ("trial-relay-output", "trial-relay-dead_letters")
    assert attempt.created[0][0]["trial-relay-dead_letters"] == 2


def test_a_store_that_is_not_offered_is_said_after_the_application(attempt: Attempt) -> None:
    """The history holds what was asked for, and no topic is made."""
    with pytest.raises(NotOffered, match="keeps no state in sqlite"):
        attempt.application("branches", parameters={"store": "sqlite"})

    (event,) = attempt.history.of(Application)
    assert event.parameters == {"persistence_interval_ms": 500, "store": "sqlite"}
    assert attempt.created == []


@pytest.mark.parametrize(
    ("progress", "said", "timeout_ms"),
    [
        ("group", {}, 3_000),
        ("group", {"outlives_start": True}, 18_000),
        ("none", {}, 18_000),
        ("none", {"timeout_ms": 1_500}, 1_500),
    ],
)
def test_a_transaction_outlives_a_start(
    attempt: Attempt, progress: OffsetsMean, said: dict[str, Any], timeout_ms: int
) -> None:
    """It lasts twice as long as the longest start if the design has to decide it."""
    attempt.manifest = attempt.manifest.model_copy(update={"progress": progress})
    attempt.starts_s += [2.0, 9.0]

    assert attempt.application(**said).event.transaction_timeout_ms == timeout_ms
