"""Answers to queries, on hand-written histories of `pulse`."""

import json

import pytest
from histories import Story
from stories import two_signals

from upheld.history.events import Record
from upheld.verdicts import Inconclusive, NotOffered


class TestAnswers:
    """No answer is wrong, uncommitted or older than what was visible before."""

    @staticmethod
    def restarted() -> tuple[Story, Record, Record]:
        """Tell a row of ada's first signal, one of both, and a start after them."""
        story, motor, gripper = two_signals()
        rows = story.pulse("ada", motor), story.pulse("ada", motor, gripper)
        story.kill()
        story.start()
        return story, *rows

    def test_not_ready_and_then_the_row(self) -> None:
        """An instance that says that it is not ready is right, and so is the last row."""
        story, _, row = self.restarted()
        story.answers(None, key="ada", ready=False)
        story.answers(row)

        assert story.found("answers") == []

    def test_nothing_or_an_older_row_after_a_start(self) -> None:
        """A row that was visible when an instance began has to be in its first answer."""
        for older in (True, False):
            story, row, _ = self.restarted()
            story.answers(row if older else None, key="ada")

            assert story.found("answers") == [("behind-commit", "ada", None)]

    def test_it_goes_back(self) -> None:
        """An instance never answers with less than before; another one may know less."""
        story, motor, gripper = two_signals()
        story.start("b")
        first = story.pulse("ada", motor)
        second = story.pulse("ada", motor, gripper)
        story.start("c")
        story.answers(second, name="c")
        story.answers(second)
        story.answers(first, name="b")
        assert story.found("answers") == []
        story.answers(first)
        assert story.found("answers") == [("reordered", "ada", None)]

    def test_of_another_state(self) -> None:
        """An answer that no records give, or that is no row, is wrong."""
        for value, name in (({"points": 99}, "duplicated"), ({"points": "many"}, "phantom")):
            story, _, row = self.restarted()
            said = json.loads(row.value or b"") | value
            story.answers(row._replace(value=json.dumps(said).encode()))

            assert story.found("answers") == [(name, "ada", None)]

    def test_nobody_could_be_wrong(self) -> None:
        """Nothing is shown if each instance that answered began before there were rows.

        A design that cannot be asked is not judged.
        """
        story, motor, gripper = two_signals()
        with pytest.raises(NotOffered):
            story.judged("answers")
        story.answers(story.pulse("ada", motor, gripper))
        with pytest.raises(Inconclusive):
            story.judged("answers")


class TestCommittedAnswers:
    """No answer holds what is not committed."""

    def test_seen_and_not_yet_seen(self) -> None:
        """A row that readers saw by then is right.

        A row that they see later, or never, is not.
        """
        story, motor, gripper = two_signals()
        rows = story.pulse("ada", motor), story.pulse("ada", motor, gripper)
        story.answers(rows[0])
        story.answers(rows[1])
        assert story.found("committed-answers") == []
        story.answers(rows[1], seen=False)
        assert story.found("committed-answers") == [("uncommitted-visible", "ada", None)]

    def test_nothing_changed(self) -> None:
        """Where every answer was the same, it could not be too early."""
        story, motor, gripper = two_signals()
        row = story.pulse("ada", motor, gripper)
        story.answers(row)
        story.answers(row)

        with pytest.raises(Inconclusive):
            story.judged("committed-answers")


class TestAnswered:
    """The last answer for every robot is its last row."""

    def test_by_every_instance(self) -> None:
        """Each instance's last answer counts."""
        story, motor, gripper = two_signals()
        rows = story.pulse("ada", motor), story.pulse("ada", motor, gripper)
        story.start("b")
        story.answers(rows[0])
        story.answers(rows[1])
        assert story.found("answered") == []
        story.answers(rows[0], name="b")
        assert story.found("answered") == [("behind-commit", "ada", None)]
        story.kill("b")
        assert story.found("answered") == []

    def test_not_ready_is_no_row(self) -> None:
        """The last row of an instance counts, and one that was never ready is stuck."""
        story, motor, gripper = two_signals()
        row = story.pulse("ada", motor, gripper)
        story.answers(None, key="ada", ready=False)
        assert story.found("answered") == [("stuck", "ada", None)]
        story.answers(row)
        story.answers(None, key="ada", ready=False)
        assert story.found("answered") == []
        story.kill()
        story.start()
        story.answers(None, key="ada", ready=False)
        assert story.found("answered") == [("stuck", "ada", None)]

    def test_nobody_asked(self) -> None:
        """A robot that nobody asked for shows nothing."""
        story, motor, gripper = two_signals()
        story.answers(story.pulse("ada", motor, gripper))
        story.signal("bob", 1, 1)

        with pytest.raises(Inconclusive):
            story.judged("answered")


class TestOnline:
    """The others answer all the time."""

    def test_after_a_kill(self) -> None:
        """An instance that is not ready after another died is not online.

        Before that it may have been starting.
        """
        story, motor, gripper = two_signals()
        row = story.pulse("ada", motor, gripper)
        story.answers(None, key="ada", name="b", ready=False)
        story.kill()
        with pytest.raises(Inconclusive):
            story.judged("online")
        story.answers(row, name="b", at_ms=5)
        assert story.found("online") == []
        story.answers(None, key="ada", name="b", ready=False, at_ms=6)
        assert story.found("online") == [("stuck", "ada", None)]

    def test_one_of_those_that_are_left_is_enough(self) -> None:
        """An instance may be busy while another one answers for the dead."""
        story, motor, gripper = two_signals()
        row = story.pulse("ada", motor, gripper)
        story.kill()
        story.answers(None, key="ada", name="b", ready=False)
        story.answers(row, name="c")
        assert story.found("online") == []
