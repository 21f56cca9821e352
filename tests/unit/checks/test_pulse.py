"""The rows of `pulse` on hand-written histories.

Signals come from three topics, and a robot has one row.
"""

import json
from typing import Any

import pytest
from stories import two_signals


class TestRelation:
    """A row is the fold of some number of a robot's records of each topic.

    The check is `relation`.
    """

    @pytest.mark.parametrize("mode", ["at_least_once", "exactly_once"])
    def test_either_topic_may_be_ahead(self, mode: str) -> None:
        """A row after each signal is right in any order, and so is the last row alone."""
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
        """The first points are those of all signals of the least moment.

        It does not matter when they come.
        """
        story, motor, gripper = two_signals()
        early = [story.signal("ada", 10, 3, "controllers"), story.signal("ada", 4, 1)]
        row = story.pulse("ada", motor, gripper, *early)

        assert story.found("relation") == []
        assert json.loads(row.value or b"")["first_points"] == 1

    def test_a_row_that_no_records_give(self) -> None:
        """More points than the records have are duplicated, and fewer are lost.

        Another name is invented.
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
        """A row that knows less of one topic than the row before is out of order.

        Under at least once it may be so after a crash.
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
        """The same row may be written twice: the contract asks for no change."""
        for mode in ("exactly_once", "at_least_once"):
            story, motor, gripper = two_signals(mode)
            story.pulse("ada", motor, gripper)
            story.pulse("ada", motor, gripper)

            assert story.found("relation") == []

    def test_it_ends_early(self) -> None:
        """A robot without a row, or with one that lacks a signal, is lost.

        A robot that lacks a name is not.
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
        """A row against the contract is invented, and says why."""
        story, motor, gripper = two_signals()
        story.pulse("ada", motor, gripper, value=value)

        assert "phantom" in {name for name, *_ in story.found("relation")}

    def test_below_the_committed_offsets(self) -> None:
        """With all instances down the row holds just the committed records.

        Under at least once it holds these or more. The check is `fold`.
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
