"""An upheld row says where its fault or its input was not what it is about."""

from histories import Story

from upheld.history.events import Claim, Instance
from upheld.judging.usefulness import NONE_SET_ASIDE, warnings


def asked_of_letters() -> Story:
    """Tell a relay of which a claim asks for its dead letters."""
    story = Story("relay", "at_least_once", sets_aside=True)
    story.start()
    story.copy(story.entry(ada=1))
    story.history.add(Claim(check="dead-letters", application="app", sentence="its letters"))
    return story


def test_a_row_without_a_dead_letter_shows_nothing_of_them() -> None:
    """The claim holds, and is of no worth."""
    assert list(warnings(asked_of_letters().history)) == [NONE_SET_ASIDE]


def test_one_record_that_was_set_aside_is_enough() -> None:
    """There is no warning."""
    story = asked_of_letters()
    story.letter(story.spoiled())

    assert list(warnings(story.history)) == []


def test_a_row_that_asks_for_no_letters_needs_none() -> None:
    """It is about something else."""
    story = Story("relay", "at_least_once")
    story.start()

    assert list(warnings(story.history)) == []


def test_a_kill_before_it_was_ready_struck_its_start() -> None:
    """The work was never struck."""
    story = Story()
    story.start()
    story.history.add(Instance(at_ms=1, application="app", name="b", event="started"))
    story.kill("b")

    (warning,) = warnings(story.history)
    assert warning.startswith("b was killed before it was ready")


def test_a_kill_at_work_is_what_a_row_is_about() -> None:
    """An instance that was ready since its start was at work."""
    story = Story()
    story.start()
    story.kill()

    assert list(warnings(story.history)) == []
