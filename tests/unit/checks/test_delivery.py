"""Committed entries were delivered, whole and once, on hand-written histories."""

import pytest
from histories import Story
from joins_in_words import told
from stories import BOTH_MODES, all_rows, balances, relayed, three_entries

from upheld.checks.delivery import shown_of
from upheld.history.events import Record
from upheld.verdicts import NotOffered


class TestFold:
    """The visible outputs are the fold of the committed input."""

    @BOTH_MODES
    @pytest.mark.parametrize("below", [0, 1, 2, 3])
    def test_the_cut(self, mode: str, below: int) -> None:
        """Below any committed offset the rows of the entries below it are what must stand."""
        story, (first, second, third) = three_entries(mode)
        for number, rows in enumerate(
            [
                [("ada", 100, 1, first), ("bob", -100, 1, first)],
                [("ada", 105, 2, second)],
                [("bob", -93, 2, third), ("eve", 1, 1, third)],
            ]
        ):
            for row in rows if number < below else []:
                story.row(*row)
        story.kill()
        story.settled(below)

        assert story.found("fold") == []

    def test_between_output_and_commit(self) -> None:
        """At_least_once allows outputs beyond the commit, and exactly_once forbids them."""
        for mode, expected in [
            ("at_least_once", []),
            ("exactly_once", [("ahead-of-commit", "ada", "app-entries-0@1")]),
        ]:
            story = balances(mode, "0123")
            story.kill()
            story.settled(2)

            assert story.found("fold") == expected

    def test_ahead_of_no_commit(self) -> None:
        """With nothing committed any visible output is ahead, and no entry is due."""
        story = balances("exactly_once", "0")
        story.kill()
        story.settled()

        assert story.found("fold") == [("ahead-of-commit", "ada", None)]

    def test_a_shard_may_lead(self) -> None:
        """A design that is atomic per shard may be ahead until its restart, never behind."""
        story = balances("exactly_once", "0123", atomic="shard")
        story.kill()
        story.settled(2)
        assert story.found("fold") == []

        behind = balances("exactly_once", "0", atomic="shard")
        behind.settled(2)

        assert behind.found("fold") == [("behind-commit", "ada", "app-entries-0@1")]

    def test_a_shard_may_not_repeat(self) -> None:
        """A shard does not show again what it showed before its restart."""
        assert balances("exactly_once", "012", "3", atomic="shard").found("relation") == []
        assert balances("exactly_once", "012", "23", atomic="shard").found("relation") == [
            ("duplicated", "ada", "app-entries-0@2")
        ]

    @BOTH_MODES
    def test_behind_the_commit(self, mode: str) -> None:
        """An offset committed before its output is lost work in either mode."""
        story = balances(mode, "01")
        story.kill()
        story.settled(3)

        assert story.found("fold") == [("behind-commit", "ada", "app-entries-0@2")]

    @BOTH_MODES
    def test_nothing_shown(self, mode: str) -> None:
        """Committed input with no output at all is behind as well."""
        story = balances(mode, "")
        story.settled(1)

        assert story.found("fold") == [("behind-commit", "ada", "app-entries-0@0")]

    @BOTH_MODES
    def test_a_hole_below_the_commit(self, mode: str) -> None:
        """A relay that left one out is caught at the cut, though its last output is right."""
        story = relayed(mode, "02")
        story.settled(3)

        assert story.found("fold") == [("lost", "north", "app-input-0@1")]

    def test_every_state_below_the_commit(self) -> None:
        """A design that declares every state has shown each one below its commit."""
        story = balances("exactly_once", "013")
        story.kill()
        story.settled(4)

        assert story.found("fold") == []
        assert story.emitting_every_state().found("fold") == [("lost", "ada", "app-entries-0@2")]

    def test_no_consumer_group(self) -> None:
        """Repeats below the commit cannot be known, so this rule alone is unsupported."""
        story = balances("at_least_once", "0123")
        story.settled(group=False)

        with pytest.raises(NotOffered, match="no offsets of a consumer group"):
            story.judged("below-the-commit")
        assert story.found("fold") == []
        assert story.found("relation") == []

    def test_each_partition_has_its_cut(self) -> None:
        """The committed offset of one partition says nothing of another."""
        story = Story()
        north = story.entry(ada=1)
        south = story.entry(bob=1, branch="south", partition=1)
        story.row("ada", 1, 1, north)
        story.row("bob", 1, 1, south, partition=1)
        story.settled(1, 1)
        assert story.found("fold") == []

        story.settled(1, 0)

        assert story.found("fold") == [("ahead-of-commit", "bob", None)]

    def test_markers_and_aborted_entries_at_the_cut(self) -> None:
        """A committed offset behind an aborted entry and its marker is the same cut."""
        story = Story()
        first = story.entry(ada=1)
        story.aborted(ada=7)
        story.gap()
        story.entry(ada=10)
        story.row("ada", 1, 1, first)
        story.settled(3)

        assert story.found("fold") == []

    def test_duplicates_below_the_cut(self) -> None:
        """A discarded duplicate below the commit is due in no row."""
        story = Story()
        first = story.entry(ada=1, via=[("up", 0, 7)])
        story.again(first)
        story.row("ada", 1, 1, first)
        story.settled(2)

        assert story.found("fold") == []

    def test_the_last_cut_with_all_down_counts(self) -> None:
        """A commit while an instance ran is no consistent cut, and an older cut is over."""
        story = balances("exactly_once", "01")
        story.settled(1)
        story.settled(2)
        story.settled(4, down=False)

        assert story.found("fold") == []

    @pytest.mark.parametrize(
        ("cents", "postings", "name"),
        [
            (5, 1, "torn"),
            (61, 3, "uncommitted-visible"),
            (27, 5, "duplicated"),
            (15, 2, "lost"),
            (9, 3, "phantom"),
        ],
    )
    def test_no_fold_gives_it(self, cents: int, postings: int, name: str) -> None:
        """A row that no cut gives is named as under the relation."""
        story = Story()
        first = story.entry(ada=1)
        story.aborted(ada=45)
        second = story.entry(("ada", 5), ("ada", 10))
        third = story.entry(ada=11)
        if name == "torn":
            story.row("ada", 1 + cents, 1 + postings, second)
        elif name == "uncommitted-visible":
            story.row("ada", cents, 4, second)
        elif name == "lost":
            story.row("ada", cents, postings, second)
        else:
            story.row("ada", cents, postings, third if name == "duplicated" else second)
        story.row("ada", 1, 1, first)
        story.settled(1)

        assert [found for found, _, _ in story.found("fold")] == [name]


class TestWhole:
    """No entry is applied to some of its accounts only."""

    @BOTH_MODES
    @pytest.mark.parametrize("shown", [0, 2, 3, 5])
    def test_all_or_none(self, mode: str, shown: int) -> None:
        """At every entry's boundary all its accounts have it or none has."""
        story, (first, second, third) = three_entries(mode)
        rows = [
            ("ada", 100, 1, first),
            ("bob", -100, 1, first),
            ("ada", 105, 2, second),
            ("bob", -93, 2, third),
            ("eve", 1, 1, third),
        ]
        for row in rows[:shown]:
            story.row(*row)

        assert story.found("whole") == []

    def test_conflated(self) -> None:
        """A later state of an account holds the entries before it."""
        story, (_, second, third) = three_entries()
        story.row("eve", 1, 1, third)
        story.row("ada", 105, 2, second)
        story.row("bob", -93, 2, third)

        assert story.found("whole") == []

    @BOTH_MODES
    def test_half_a_collection(self, mode: str) -> None:
        """An entry that ada has and bob has not is torn, and bob's is the key."""
        story, (first, _, _) = three_entries(mode)
        story.row("ada", 100, 1, first)

        assert story.found("whole") == [("torn", "bob", "app-entries-0@0")]

    def test_shards(self) -> None:
        """A shard holds whole output partitions: accounts of one have an entry together."""
        for partition, found in ((1, []), (0, [("torn", "bob", "app-entries-0@1")])):
            story = Story("ledger", atomic="shard")
            story.start()
            first = story.entry(ada=1, bob=1)
            second = story.entry(ada=1, bob=1, eve=1)  # eve has no output yet
            story.row("ada", 1, 1, first)
            story.row("bob", 1, 1, first, partition=partition)
            story.row("ada", 2, 2, second)

            assert story.found("whole") == found

    def test_half_a_collection_at_the_end(self) -> None:
        """The last entry counts too."""
        story, (first, second, third) = three_entries()
        all_rows(story, [first, second, third])
        story.history.events.pop()

        assert story.found("whole") == [("torn", "eve", "app-entries-0@2")]

    def test_half_of_one_account(self) -> None:
        """A row with half of its own postings is torn."""
        story = Story()
        entry = story.entry(("ada", 5), ("ada", 10))
        story.row("ada", 5, 1, entry)

        assert story.found("whole") == [("torn", "ada", "app-entries-0@0")]

    def test_equal_offsets_of_two_partitions(self) -> None:
        """Entries at one offset of two partitions are two entries."""
        story = Story()
        north = story.entry(ada=1)
        _ = story.entry(bob=1, branch="south", partition=1)
        story.row("ada", 1, 1, north)

        assert story.found("whole") == []

    def test_a_duplicate_for_one_account_only(self) -> None:
        """An entry that only one of its accounts discards is whole when the other has it."""
        story = Story()
        first = story.entry(ada=1, via=[("up", 0, 8)])
        second = story.entry(ada=10, bob=10, via=[("up", 0, 7)])
        story.row("ada", 1, 1, first)
        story.row("bob", 10, 1, second)

        assert story.found("whole") == []


class TestOnce:
    """No output stands there twice."""

    @BOTH_MODES
    @pytest.mark.parametrize(
        ("shown", "again"), [("012", []), ("02", []), ("0112", [1]), ("01201", [0, 1])]
    )
    def test_twice(self, mode: str, shown: str, again: list[int]) -> None:
        """Each that comes again is named, in either mode: there was no crash to allow it."""
        found = balances(mode, shown).found("once")

        assert found == [("duplicated", "ada", f"app-entries-0@{offset}") for offset in again]

    def test_a_value_that_is_none(self) -> None:
        """Other checks name a record that is no output, however often it comes."""
        story = balances("exactly_once", "0")
        for _ in range(2):
            story.row("ada", 999, 1, next(iter(story.history.of(Record))))

        assert story.found("once") == []


class TestBelowTheCommit:
    """Nothing comes again whose input was committed at the kill."""

    def killed_at(self, below: int, again: str) -> Story:
        """Tell a kill with this much committed; these states come after the restart."""
        story = balances("at_least_once", "012")
        story.kill()
        story.settled(below)
        story.start()
        entries = list(story.history.of(Record))[:4]
        for number in map(int, again):
            story.row("ada", int("1111"[: number + 1]), number + 1, entries[number])
        return story

    @pytest.mark.parametrize(("below", "again"), [(2, "23"), (3, "3"), (2, "3"), (0, "0123")])
    def test_above(self, below: int, again: str) -> None:
        """A state of uncommitted input may come again."""
        assert self.killed_at(below, again).found("below-the-commit") == []

    @pytest.mark.parametrize(
        ("below", "again", "repeated"), [(2, "123", [1]), (3, "0123", [0, 1, 2])]
    )
    def test_below(self, below: int, again: str, repeated: list[int]) -> None:
        """A state of committed input may not come again, and each repeat is named."""
        expected = [("duplicated", "ada", f"app-entries-0@{offset}") for offset in repeated]

        assert self.killed_at(below, again).found("below-the-commit") == expected

    def test_before_the_kill(self) -> None:
        """A repeat that was there before the kill is no repeat of the restart."""
        story = balances("at_least_once", "0112")
        story.kill()
        story.settled(3)
        story.start()

        assert story.found("below-the-commit") == []


@pytest.mark.parametrize(("outputs", "shown"), [("0123", 4), ("03", 2), ("0033", 2), ("", 0)])
def test_shown_states_of_a_ledger(outputs: str, shown: int) -> None:
    """Each state counts once, however often it came."""
    story = balances("at_least_once", outputs)

    assert shown_of(story.history, ["app"]) == (4, shown)


def test_nothing_to_hint_at() -> None:
    """A design that declares it needs no hint; a join has no order of states."""
    declared = balances("exactly_once", "0123").emitting_every_state()
    join = told("holdings", "1A .A .A", "0+2")

    assert shown_of(declared.history, ["app"]) == (0, 0)
    assert shown_of(join.history, ["app"]) == (0, 0)
