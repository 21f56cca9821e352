"""A claim that cannot be judged leaves the row its other claims."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attempts import Attempt
from histories import Story

from upheld.history.events import Record
from upheld.trial.trial import Asked, Trial
from upheld.verdicts import Inconclusive, MarkMissed, NotOffered, Violated


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """Make an attempt that has no application yet."""
    attempt = Attempt(tmp_path)
    attempt.rig.out = tmp_path
    attempt.rig.histories = tmp_path / "history"
    attempt.rig.seed = 7
    attempt.rig.run.run_id = "1234567"
    attempt.rig.broker.kind = attempt.rig.broker.version = "none"
    attempt.rig.broker.ours = True
    return Trial(attempt.rig, attempt.manifest, Asked("G1.story", ()), 0)


def judged(trial: Trial, story: Story, *checks: str) -> None:
    """Make these claims of a history as it stands."""
    trial.history = story.history
    application: Any = SimpleNamespace(name="app", event=SimpleNamespace(contract=None))
    for check in checks:
        trial.claim(check, application, "a sentence")


def at_rest() -> Story:
    """Tell of a ledger that was killed, and whose offsets nobody knows."""
    story = Story()
    story.start()
    story.row("ada", 1, 1, story.entry(ada=1))
    story.kill()
    story.settled(group=False)
    return story


def test_the_row_goes_on_to_its_last_claim(trial: Trial) -> None:
    """The first inconclusive claim counts for more than an unsupported one before it."""
    judged(trial, at_rest(), "below-the-commit", "promptly", "paced", "fold")

    outcome = trial.outcome(None)
    assert isinstance(outcome, Inconclusive)
    assert "'promptly'" in str(outcome)


def test_a_later_claim_may_be_violated(trial: Trial) -> None:
    """Then that is the end of the attempt."""
    story = at_rest()
    story.row("ada", 1, 1, next(story.history.of(Record)))

    with pytest.raises(Violated) as violated:
        judged(trial, story, "promptly", "relation")
    assert trial.outcome(violated.value) is violated.value


def test_what_ends_an_attempt(trial: Trial) -> None:
    """A row that goes no further is unsupported only if no claim was inconclusive."""
    judged(trial, at_rest(), "promptly")
    missed = MarkMissed("not seen")

    assert isinstance(trial.outcome(NotOffered("no such request")), Inconclusive)
    assert trial.outcome(missed) is missed
