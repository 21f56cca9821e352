"""The prefix rule where no offsets in Kafka say how far the outputs are."""

from typing import Any

import pytest
from histories import Story
from stories import BOTH_MODES, balances, relayed

from upheld.checks.prefix import reached
from upheld.checks.view import view_of
from upheld.verdicts import NotOffered


def at_rest(story: Story) -> list[tuple[str, Any, Any]]:
    """Kill the instance, and return what the prefix rule finds."""
    story.kill()
    story.settled(group=False)
    return story.found("fold")


def two_accounts(mode: str = "exactly_once", atomic: str = "batch") -> Story:
    """Tell that ada and bob have two entries each, in turns, in one partition."""
    story = Story("ledger", mode, atomic=atomic)
    story.start()
    ada = story.entry(ada=1)
    bob = story.entry(bob=1)
    story.entry(ada=1)
    later = story.entry(bob=1)
    story.row("ada", 1, 1, ada)
    story.row("bob", 1, 1, bob)
    story.row("bob", 2, 2, later)
    return story


@pytest.mark.parametrize("shown", ["", "0", "01", "0123"])
def test_the_fold_of_some_prefix(shown: str) -> None:
    """How long the prefix is makes no difference."""
    assert at_rest(balances("exactly_once", shown)) == []


def test_the_fold_of_no_prefix() -> None:
    """An entry of bob is visible, and an entry of ada before it is not."""
    assert at_rest(two_accounts()) == [("torn", "ada", "app-entries-0@2")]


def test_each_partition_has_its_prefix() -> None:
    """The entries of another partition may all be missing."""
    story = Story()
    story.start()
    story.entry(ada=1)
    south = story.entry(bob=1, branch="south", partition=1)
    story.row("bob", 1, 1, south, partition=1)

    assert at_rest(story) == []


def test_not_below_what_was_seen() -> None:
    """A state that was visible once takes its prefix with it."""
    assert at_rest(balances("exactly_once", "010")) == [("torn", "ada", "app-entries-0@1")]


@pytest.mark.parametrize(
    ("mode", "atomic"), [("at_least_once", "batch"), ("exactly_once", "shard")]
)
def test_outputs_that_may_lead(mode: str, atomic: str) -> None:
    """Every output is a later state than that of the empty prefix."""
    assert at_rest(two_accounts(mode, atomic)) == []


def test_keys_that_come_by_a_hop() -> None:
    """Each key has a prefix of its own, and never goes back in it."""
    apart = two_accounts()
    apart.declare(progress="group-leads")
    back = balances("exactly_once", "010")
    back.declare(progress="group-leads")

    assert at_rest(apart) == []
    assert at_rest(back) == [("torn", "ada", "app-entries-0@1")]


def test_an_entry_on_its_way_through_a_hop() -> None:
    """A crash leaves it in some of its accounts, and only a settled point says more."""
    story = Story()
    story.start()
    entry = story.entry(ada=1, bob=1)
    story.declare(progress="group-leads")
    story.row("ada", 1, 1, entry)
    assert story.found("whole") == [("torn", "bob", "app-entries-0@0")]

    story.kill()

    with pytest.raises(NotOffered, match="a hop"):
        story.found("whole")


@BOTH_MODES
def test_an_output_that_is_no_state(mode: str) -> None:
    """It is the fold of no prefix in either mode."""
    story = balances(mode, "0")
    story.row("ada", 7, 1, story.entry(ada=3))

    assert [name for name, *_ in at_rest(story)] != []


def test_a_hole_in_what_does_not_conflate() -> None:
    """The relay shows each record of the prefix."""
    assert at_rest(relayed("exactly_once", "02")) == [("lost", "north", "app-input-0@1")]


@pytest.mark.parametrize("role", ["motors", "grippers"])
def test_topics_that_make_a_row_together(role: str) -> None:
    """A row that lacks a signal is torn if a later one of the same topic is visible."""
    story = Story("pulse")
    story.start()
    story.signal("ada", 10, 5)
    story.pulse("eve", story.signal("eve", 20, 7, role))

    found = at_rest(story)

    assert [name for name, *_ in found] == (["torn"] if role == "motors" else [])


def test_what_is_visible_reaches_so_far() -> None:
    """A partition of which nothing is visible is not named."""
    story = Story()
    north = story.entry(ada=1)
    story.entry(ada=1, branch="south", partition=1)
    story.row("ada", 1, 1, north)

    assert reached(view_of(story.history, "app")) == {"app-entries-0": 1}
