"""The program `pulse` and its checks on hand-written histories: signals of three topics, one row a
robot, and its answers.
"""

import json
from typing import Any

import pytest
from histories import Story

from upheld.history.events import Record
from upheld.verdicts import Inconclusive, NotOffered


def two_signals(mode: str = "exactly_once") -> tuple[Story, Record, Record]:
    """A motor and a gripper of ada have told something."""
    story = Story("pulse", mode)
    story.start()
    return story, story.signal("ada", 10, 5), story.signal("ada", 20, 7, "grippers")


class TestRelation:
    """What a row may say: the fold of some number of a robot's records of each topic
    (`relation`).
    """

    @pytest.mark.parametrize("mode", ["at_least_once", "exactly_once"])
    def test_either_topic_may_be_ahead(self, mode: str) -> None:
        """A row after each signal, in whichever order, is right, and so is the last one alone."""
        for number in range(3):
            story, motor, gripper = two_signals(mode)
            for read in [
                [(motor,), (motor, gripper)],
                [(gripper,), (motor, gripper)],
                [(motor, gripper)],
            ][number]:
                story.pulse("ada", *read)

            assert story.found("relation") == []

    def test_signals_of_one_moment_and_older_ones(self) -> None:
        """The first points are those of all signals of the least moment, whenever they come."""
        story, motor, gripper = two_signals()
        early = [story.signal("ada", 10, 3, "controllers"), story.signal("ada", 4, 1)]
        row = story.pulse("ada", motor, gripper, *early)

        assert story.found("relation") == []
        assert json.loads(row.value or b"")["first_points"] == 1

    def test_a_row_that_no_records_give(self) -> None:
        """More points than its records have are duplicated, fewer are lost, and another name is
        invented.
        """
        for value, name in (
            ({"points": 13}, "duplicated"),
            ({"points": 11}, "lost"),
            ({"name": "Bob"}, "phantom"),
        ):
            story, motor, gripper = two_signals()
            story.pulse("ada", motor, gripper, value=value)

            assert (name, "ada") in [found[:2] for found in story.found("relation")]

    def test_a_row_of_records_that_are_not_there(self) -> None:
        """Positions of another robot's records, or of aborted ones, are none to have read."""
        story, motor, gripper = two_signals()
        aborted = story.signal("ada", 30, 9, "controllers", visible=False)
        other = story.signal("bob", 30, 9, "controllers")
        story.pulse("ada", motor, gripper, aborted)
        story.pulse("ada", motor, gripper, other)

        assert {name for name, key, _ in story.found("relation") if key == "ada"} == {
            "uncommitted-visible",
            "phantom",
            "lost",
        }

    def test_it_goes_back(self) -> None:
        """A row that knows less of one topic than the one before it is out of order; at least once
        may, after a crash.
        """
        for mode, crash, found in (
            ("exactly_once", True, 1),
            ("at_least_once", False, 1),
            ("at_least_once", True, 0),
        ):
            story, motor, gripper = two_signals(mode)
            story.pulse("ada", motor)
            if crash:
                story.kill()
                story.start()
            story.pulse("ada", gripper)
            story.pulse("ada", motor, gripper)

            assert story.found("relation") == [("reordered", "ada", "app-motors-0@0")] * found

    def test_it_comes_again(self) -> None:
        """The same row twice is a duplicate under exactly_once."""
        for mode, found in (("exactly_once", ["duplicated"]), ("at_least_once", [])):
            story, motor, gripper = two_signals(mode)
            story.pulse("ada", motor, gripper)
            story.pulse("ada", motor, gripper)

            assert [name for name, *_ in story.found("relation")] == found

    def test_it_ends_early(self) -> None:
        """A robot without a row, or with one that lacks a signal, is lost; one that lacks a name is
        not.
        """
        story, motor, gripper = two_signals()
        assert [name for name, *_ in story.found("relation")] == ["lost"]
        story.pulse("ada", motor)
        assert [name for name, *_ in story.found("relation")] == ["lost"]
        story.called("ada", "Ada")
        story.pulse("ada", motor, gripper)
        assert story.found("relation") == []

    def test_of_a_robot_that_nobody_knows(self) -> None:
        """A row of a robot without signals is invented."""
        story, motor, gripper = two_signals()
        story.pulse("ada", motor, gripper)
        story.pulse("bob", motor)

        assert [(name, key) for name, key, _ in story.found("relation")] == [("phantom", "bob")]

    @pytest.mark.parametrize(
        "value", [{"rate_mhz": 1.5}, {"applied": {}}, {"more": 1}, {"robot": "bob"}, {"name": 1}]
    )
    def test_it_is_no_row(self, value: dict[str, Any]) -> None:
        """What the contract does not allow is invented, and says why."""
        story, motor, gripper = two_signals()
        story.pulse("ada", motor, gripper, value=value)

        assert "phantom" in {name for name, *_ in story.found("relation")}

    def test_below_the_committed_offsets(self) -> None:
        """With all instances down the row holds just what is committed; at least once, that or more
        (`fold`).
        """
        for mode, read, name in (
            ("exactly_once", 1, None),
            ("exactly_once", 2, "ahead-of-commit"),
            ("exactly_once", 0, "behind-commit"),
            ("at_least_once", 2, None),
            ("at_least_once", 0, "behind-commit"),
        ):
            story, motor, gripper = two_signals(mode)
            if read:
                story.pulse("ada", *(motor, gripper)[:read])
            story.settled(1)

            assert [found for found, *_ in story.found("fold")] == ([name] if name else [])


class TestWithNames:
    """The last row of every robot has its name."""

    def test_of_the_last_record(self) -> None:
        """It is the last name that counts; a row without it is not the whole."""
        for read, found in ((2, []), (1, [("lost", "ada", "app-motors-0@0")])):
            story, motor, gripper = two_signals()
            names = story.called("ada", "Ada"), story.called("ada", "Augusta")
            story.pulse("ada", motor, gripper, *names[:read])

            assert story.found("with-names") == found

    def test_no_row(self) -> None:
        """A robot without a row has no name either."""
        story, *_ = two_signals()

        assert [name for name, *_ in story.found("with-names")] == ["lost"]


class TestAnswers:
    """No answer is wrong, uncommitted or older than what was visible before."""

    @staticmethod
    def restarted() -> tuple[Story, Record, Record]:
        """A row of ada's first signal, one of both, and a start after them."""
        story, motor, gripper = two_signals()
        rows = story.pulse("ada", motor), story.pulse("ada", motor, gripper)
        story.kill()
        story.start()
        return story, *rows

    def test_not_ready_and_then_the_row(self) -> None:
        """Who says that it is not ready is right, and so is the last row."""
        story, _, row = self.restarted()
        story.answers(None, key="ada", ready=False)
        story.answers(row)

        assert story.found("answers") == []

    def test_nothing_or_an_older_row_after_a_start(self) -> None:
        """What was visible when it began has to be in its first answer."""
        for older in (True, False):
            story, row, _ = self.restarted()
            story.answers(row if older else None, key="ada")

            assert story.found("answers") == [("behind-commit", "ada", None)]

    def test_it_goes_back(self) -> None:
        """An instance never answers with less than it did before; another one may know less."""
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
            story.answers(row.model_copy(update={"value": json.dumps(said).encode()}))

            assert story.found("answers") == [(name, "ada", None)]

    def test_nobody_could_be_wrong(self) -> None:
        """Where nobody answered who began when rows were there, nothing is shown; who cannot be
        asked is not judged.
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
        """A row that readers saw by then is right; one that they see later, or never, is not."""
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
        """Who is not ready after another died is not online; before that it may have been
        starting.
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


class TestFootprint:
    """Beside its table it keeps few topics, none of them wide or a copy."""

    def test_what_is_kept(self) -> None:
        """One narrow topic beside the table is allowed."""
        story, *_ = two_signals()
        assert story.found("footprint", topics=1, partitions=2) == []
        story.keeps("app-repartition", 2)
        story.keeps("app-frequency", 2)
        assert story.found("footprint", topics=1, partitions=2) == []

    @pytest.mark.parametrize(
        ("topic", "partitions", "repeated"),
        [("app-x", 3, 0), ("app-x", 1, 5), ("app-frequency", 3, 0)],
    )
    def test_too_wide_or_a_copy(self, topic: str, partitions: int, repeated: int) -> None:
        """A wide one, also if it is the table, and a copy of the table's rows are named."""
        story, *_ = two_signals()
        story.keeps(topic, partitions, repeated)
        (anomaly,) = story.judged("footprint", topics=1, partitions=2)

        assert (anomaly.name, topic in anomaly.text) == ("leaked-topic", True)

    def test_too_many(self) -> None:
        """A second one is named with the first."""
        story, *_ = two_signals()
        story.keeps("app-x")
        story.keeps("app-y")
        (anomaly,) = story.judged("footprint", topics=1, partitions=2)

        assert "app-x, app-y" in anomaly.text

    def test_more_than_its_table(self) -> None:
        """As many bytes as the rows of the table have are what a design declares that declares
        nothing.
        """
        story, motor, gripper = two_signals()
        story.pulse("ada", motor, gripper)
        size = sum(
            len(r.key or b"") + len(r.value or b"")
            for r in story.history.of(Record)
            if r.topic == story.writes
        )
        assert size
        story.keeps("app-x", size_bytes=size)
        assert story.found("footprint", topics=1, partitions=2) == []
        story.keeps("app-x", size_bytes=size + 1)
        (anomaly,) = story.judged("footprint", topics=1, partitions=2)

        assert f"{size + 1} bytes, and declares {size}" in anomaly.text
