"""Two stages in one application: `branches` and its store."""

import gc
import json
import weakref

import pytest
from histories import Story

from upheld.checks.view import view_of
from upheld.history.events import Record, Stored


def two_entries() -> tuple[Story, list[Record]]:
    """Tell a branch with three postings of two accounts.

    An entry without postings changes nothing.
    """
    story = Story("branches", "at_least_once", persistence_interval_ms=500)
    story.start()
    entries = story.entry(ada=5, bob=-2), story.entry(), story.entry(ada=7)
    return story, [entries[0], entries[2]]


class TestRelation:
    """The rows that the two output topics may hold."""

    def test_all_postings_of_an_entry_are_its_branch_s(self) -> None:
        """A branch has all postings of its entries, and each account has its own."""
        story, (first, second) = two_entries()
        accounts(story, first, second)
        story.total("north", 3, 2, first)
        story.total("north", 10, 3, second)

        assert story.found("relation") == []

    def test_what_the_first_stage_kept_for_itself(self) -> None:
        """A total that lacks an entry is short by its postings."""
        story, (first, second) = two_entries()
        accounts(story, first, second)
        story.total("north", 7, 1, second)

        assert {(name, key) for name, key, _ in story.found("relation")} == {("lost", "north")}

    def test_the_first_stage_is_silent(self) -> None:
        """Right totals do not make up for accounts that nobody sees."""
        story, (_, second) = two_entries()
        story.total("north", 10, 3, second)

        assert story.found("relation") == [
            ("lost", "ada", second.at),
            ("lost", "bob", "app-entries-0@0"),
        ]

    def test_a_row_in_the_other_stage_s_topic(self) -> None:
        """An account is no branch."""
        story, (first, second) = two_entries()
        accounts(story, first, second)
        story.total("north", 10, 3, second)
        story.row("bob", -2, 1, first)

        assert story.found("relation") == [("phantom", "bob", None)]


def accounts(story: Story, first: Record, second: Record) -> None:
    """Append the rows of the first stage."""
    for account, cents, postings, entry in (
        ("ada", 5, 1, first),
        ("bob", -2, 1, first),
        ("ada", 12, 2, second),
    ):
        story.row(account, cents, postings, entry, topic="app-balances")


@pytest.mark.parametrize(
    ("ada", "north", "missing"),
    [
        (12, 10, []),
        (12, 3, ["north"]),
        (5, 10, ["ada"]),
        (None, 10, ["ada"]),
        (12, None, ["north"]),
    ],
)
def test_the_last_states(ada: int | None, north: int | None, missing: list[str]) -> None:
    """An old or missing state of either stage is late.

    It was not stored before the commit either.
    """
    story, (first, second) = two_entries()
    states = {  # stage, key and balance -> postings, last entry
        ("balances", "bob", -2): (1, first),
        ("balances", "ada", 5): (1, first),
        ("balances", "ada", 12): (2, second),
        ("totals", "north", 3): (2, first),
        ("totals", "north", 10): (3, second),
    }
    kept = []
    for stage, key, cents in [
        ("balances", "bob", -2),
        ("balances", "ada", ada),
        ("totals", "north", north),
    ]:
        if cents is not None:
            postings, entry = states[stage, key, cents]
            applied = {"topic": entry.topic, "partition": entry.partition, "offset": entry.offset}
            of = "branch" if stage == "totals" else "account"
            state = {of: key, "balance_cents": cents, "postings": postings, "applied": applied}
            kept.append((stage, key, json.dumps(state)))
    story.settled(3)
    story.history.add(Stored(at_ms=0, application="app", rows=tuple(kept), writes=()))
    story.rests()

    assert [key for _, key, _ in story.found("stored")] == missing
    assert [key for _, key, _ in story.found("stored-first")] == missing


def test_nothing_holds_a_history_that_is_done_with() -> None:
    """Nothing holds a history once it is done with, not even the history itself.

    A run has hundreds, of tens of megabytes each, and none waits for the collector of cycles.
    """
    story, _ = two_entries()
    story.found("relation")
    views = [weakref.ref(stage) for stage in view_of(story.history, "app").stages]
    gc.disable()
    try:
        story.history.close()

        assert [view() for view in views] == [None, None]
    finally:
        gc.enable()
