from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import pytest
import test_dead_letters
import test_effects
import test_flush
import test_joins
import test_lag
import test_pulse
import test_stores
from histories import Found, Story

from upheld.checks import ANOMALIES, CHECKS
from upheld.checks.registry import check
from upheld.generators.envelope_pb2 import Envelope, Hop
from upheld.history.events import Record
from upheld.history.marks import Look
from upheld.programs import States, ledger
from upheld.programs.ledger import LEDGER
from upheld.verdicts import Inconclusive, NotOffered

BOTH_MODES = pytest.mark.parametrize("mode", ["exactly_once", "at_least_once"])
BOTH_PROGRAMS = pytest.mark.parametrize("program", ["ledger", "relay"])


def three_entries(mode: str = "exactly_once", **options: Any) -> tuple[Story, list[Record]]:
    """A ledger that is fed three entries: ada and bob, ada alone, bob and eve."""
    story = Story("ledger", mode, **options)
    story.start()
    return story, [story.entry(ada=100, bob=-100), story.entry(ada=5), story.entry(bob=7, eve=1)]


def all_rows(story: Story, entries: list[Record]) -> None:
    """Every state of the three entries, in order."""
    first, second, third = entries
    story.row("ada", 100, 1, first)
    story.row("bob", -100, 1, first)
    story.row("ada", 105, 2, second)
    story.row("bob", -93, 2, third)
    story.row("eve", 1, 1, third)


def four_letters(mode: str = "exactly_once", **options: Any) -> tuple[Story, list[Record]]:
    """A relay that is fed four entries of one key."""
    story = Story("relay", mode, **options)
    story.start()
    return story, [story.entry(ada=cents) for cents in range(4)]


def relayed(mode: str, *pieces: str) -> Story:
    """A relay whose outputs are these inputs by number; a new start between the pieces."""
    story, letters = four_letters(mode)
    for again, piece in enumerate(pieces):
        if again:
            story.kill()
            story.start()
        for number in piece:
            story.copy(letters[int(number)])
    return story


def balances(mode: str, *pieces: str, atomic: str = "batch") -> Story:
    """A ledger of one account with four entries, whose outputs are these states by number; a new
    start between.
    """
    story = Story("ledger", mode, atomic=atomic)
    story.start()
    entries = [story.entry(ada=cents) for cents in (1, 10, 100, 1000)]
    for again, piece in enumerate(pieces):
        if again:
            story.kill()
            story.start()
        for number in map(int, piece):
            story.row("ada", int("1111"[: number + 1]), number + 1, entries[number])
    return story


class TestRelation:
    """The outputs are the model's, in the order and as often as the mode allows."""

    @BOTH_MODES
    def test_every_state_in_order(self, mode: str) -> None:
        """A design that emits for every entry is right in both modes."""
        story, entries = three_entries(mode)
        all_rows(story, entries)

        assert story.found("relation") == []

    @BOTH_MODES
    def test_conflation(self, mode: str) -> None:
        """A ledger may emit once per batch: states are skipped, the last one is the last."""
        assert balances(mode, "03").found("relation") == []
        assert balances(mode, "3").found("relation") == []

    @BOTH_MODES
    @pytest.mark.parametrize(
        ("outputs", "missing"),
        [("0123", None), ("023", 1), ("123", 0), ("03", 1), ("012", 3), ("", 3)],
    )
    def test_a_relay_skips_nothing(self, mode: str, outputs: str, missing: int | None) -> None:
        """One record for one record: the first one that is missing is named by its position."""
        expected = [] if missing is None else [("lost", "north", f"app-input-0@{missing}")]

        assert relayed(mode, outputs).found("relation") == expected

    @BOTH_MODES
    def test_the_last_state_is_lost(self, mode: str) -> None:
        """An account that rests on an older state has lost its last entry."""
        story, (first, second, third) = three_entries(mode)
        story.row("ada", 105, 2, second)
        story.row("bob", -100, 1, first)
        story.row("eve", 1, 1, third)

        assert story.found("relation") == [("lost", "bob", "app-entries-0@2")]

    @BOTH_MODES
    def test_a_key_is_lost(self, mode: str) -> None:
        """An account with entries and no row at all has lost them."""
        story, (_, second, third) = three_entries(mode)
        story.row("ada", 105, 2, second)
        story.row("bob", -93, 2, third)

        assert story.found("relation") == [("lost", "eve", "app-entries-0@2")]

    def test_a_repeat_is_a_duplicate_under_exactly_once_only(self) -> None:
        """The same state twice is what at_least_once allows and exactly_once forbids."""
        assert balances("at_least_once", "01223").found("relation") == []
        assert balances("exactly_once", "01223").found("relation") == [
            ("duplicated", "ada", "app-entries-0@2")
        ]
        assert relayed("at_least_once", "01223").found("relation") == []
        assert relayed("exactly_once", "01223").found("relation") == [
            ("duplicated", "north", "app-input-0@2")
        ]

    @pytest.mark.parametrize("make", [balances, relayed])
    def test_a_step_back_needs_a_restart(self, make: Callable[..., Story]) -> None:
        """At_least_once may step back once behind each new start, and never without one or before
        it.
        """
        assert make("at_least_once", "012", "123").found("relation") == []
        assert make("at_least_once", "012", "12", "123").found("relation") == []
        assert {name for name, _, _ in make("at_least_once", "012123").found("relation")} == {
            "reordered"
        }
        assert {name for name, _, _ in make("at_least_once", "012", "12123").found("relation")} == {
            "reordered"
        }
        assert {name for name, _, _ in make("at_least_once", "01212", "23").found("relation")} == {
            "reordered"
        }

    def test_a_step_back_behind_a_resumed_instance(self) -> None:
        """Who was paused and goes on under at_least_once may repeat what its successor had done."""
        story = balances("at_least_once", "0123")
        story.resume()
        entries = list(story.history.of(Record))[:4]
        story.row("ada", 111, 3, entries[2])
        story.row("ada", 1111, 4, entries[3])

        assert story.found("relation") == []

    @pytest.mark.parametrize(("beside", "found"), [(True, set()), (False, {"reordered"})])
    def test_a_step_back_behind_an_instance_that_left(self, beside: bool, found: set[str]) -> None:
        """Who goes on with what another one left may step back once; where nobody else ran nobody
        took over.
        """
        story = Story("ledger", "at_least_once")
        story.start("a")
        if beside:
            story.start("b")
        entries = [story.entry(ada=1) for _ in range(3)]
        for piece in ("012", "12") if beside else ("012",):  # a join is one already
            for number in map(int, piece):
                story.row("ada", number + 1, number + 1, entries[number])
        story.kill("a")
        story.row("ada", 3, 3, entries[2])
        story.row("ada", 2, 2, entries[1])
        story.row("ada", 3, 3, entries[2])

        assert {name for name, _, _ in story.found("relation")} == found

    def test_a_step_back_names_the_entry(self) -> None:
        """A step back that nothing allows names the state that came again."""
        assert balances("at_least_once", "02123").found("relation") == [
            ("reordered", "ada", "app-entries-0@1")
        ]

    def test_a_step_back_after_a_restart_is_no_excuse_under_exactly_once(self) -> None:
        """Under exactly_once every state that comes again is a duplicate, restart or not."""
        assert balances("exactly_once", "012", "123").found("relation") == [
            ("duplicated", "ada", "app-entries-0@1")
        ]

    def test_swapped(self) -> None:
        """Two states in the wrong order are reordered, not lost and not duplicated."""
        assert balances("exactly_once", "0213").found("relation") == [
            ("reordered", "ada", "app-entries-0@1")
        ]
        assert {name for name, _, _ in relayed("exactly_once", "0213").found("relation")} == {
            "reordered"
        }
        assert {name for name, _, _ in relayed("exactly_once", "1023").found("relation")} == {
            "reordered"
        }

    def test_ends_behind_the_end(self) -> None:
        """At_least_once may step back, but must come forward again to the last state."""
        assert balances("at_least_once", "0123", "1").found("relation") == [
            ("lost", "ada", "app-entries-0@3")
        ]

    def test_a_repeat_may_not_leave_something_out(self) -> None:
        """A relay that steps back repeats everything from there."""
        assert {
            name for name, _, _ in relayed("at_least_once", "0123", "13").found("relation")
        } == {"reordered"}

    def test_one_key_in_two_partitions(self) -> None:
        """A key that is spread over partitions has no order, whatever its values say."""
        story, letters = four_letters()
        for number, letter in enumerate(letters):
            story.copy(letter, partition=number % 2)

        assert story.found("relation") == [("reordered", "north", None)]

    @BOTH_MODES
    def test_discarded_duplicates(self, mode: str) -> None:
        """A repeat by a relay upstream changes nothing and emits nothing, also when a whole run
        steps back.
        """
        story = Story("ledger", mode)
        first = story.entry(ada=1, via=[("up", 0, 7)])
        second = story.entry(ada=10, via=[("up", 0, 8)])
        story.again(first)
        story.again(second)
        third = story.entry(ada=100, via=[("up", 0, 9)])
        story.row("ada", 1, 1, first)
        story.row("ada", 11, 2, second)
        story.row("ada", 111, 3, third)

        assert story.found("relation") == []

    def test_a_duplicate_applied_again(self) -> None:
        """Counting a repeat of a relay upstream is duplicated, and the first hop it came by does
        not hide it.
        """
        story = Story()
        first = story.entry(ada=1, via=[("up", 0, 7)])
        again = story.again(first)
        story.row("ada", 1, 1, first)
        story.row("ada", 2, 2, again)

        assert ("duplicated", "ada", "app-entries-0@0") in story.found("relation")

    def test_a_duplicate_that_emits(self) -> None:
        """Under exactly_once a discarded entry emits nothing, not even the unchanged row."""
        story = Story()
        first = story.entry(ada=1, via=[("up", 0, 7)])
        again = story.again(first)
        story.row("ada", 1, 1, first)
        story.row("ada", 1, 1, again)

        assert story.found("relation") == [("duplicated", "ada", "app-entries-0@0")]

    @pytest.mark.parametrize("before", [("up", 0, 7), ("up", 0, 7, b"old")])
    @pytest.mark.parametrize("after", [("down", 0, 3), ("up", 1, 3), ("up", 0, 3, b"new")])
    def test_the_first_hop_moves(self, before: Any, after: Any) -> None:
        """Another topic, partition or topic id starts again at any offset, and a repeat there is
        discarded again.
        """
        story = Story()
        first = story.entry(ada=1, via=[before])
        second = story.entry(ada=10, via=[after])
        story.again(second)
        story.row("ada", 1, 1, first)
        story.row("ada", 11, 2, second)

        assert story.found("relation") == []

    def test_the_first_hop_moved_and_was_discarded(self) -> None:
        """A design that ignores where the first hop is loses entries after the move."""
        story = Story()
        first = story.entry(ada=1, via=[("up", 0, 7)])
        story.entry(ada=10, via=[("down", 0, 3)])
        story.row("ada", 1, 1, first)

        assert story.found("relation") == [("lost", "ada", "app-entries-0@1")]

    def test_the_first_hop_decides_of_several(self) -> None:
        """Behind two relays the first of the hops counts, the second is new for every repeat."""
        story = Story()
        first = story.entry(ada=1, via=[("up", 0, 7), ("middle", 0, 0)])
        story.entry(ada=1, via=[("up", 0, 7), ("middle", 0, 1)])
        story.row("ada", 1, 1, first)

        assert story.found("relation") == []

    @BOTH_MODES
    def test_aborted_between(self, mode: str) -> None:
        """Aborted entries between the others count for nothing, and nothing is missing for them."""
        story = Story("ledger", mode)
        first = story.entry(ada=1)
        story.aborted(ada=50)
        story.gap()
        second = story.entry(ada=10)
        story.aborted(eve=50)
        story.row("ada", 1, 1, first)
        story.row("ada", 11, 2, second)

        assert story.found("relation") == []

    def test_all_aborted_are_counted(self) -> None:
        """A design that reads uncommitted is wrong from the first aborted entry on, which is
        named.
        """
        story = Story()
        first, aborted, second, _, last = (
            story.entry(ada=1),
            story.aborted(ada=50),
            story.entry(ada=10),
            story.aborted(ada=60),
            story.entry(ada=100),
        )
        story.row("ada", 1, 1, first)
        story.row("ada", 51, 2, aborted)
        story.row("ada", 61, 3, second)
        story.row("ada", 221, 5, last)

        assert story.found("relation") == [
            *[("uncommitted-visible", "ada", "app-entries-0@1")] * 3,
            ("lost", "ada", "app-entries-0@4"),
        ]

    def test_one_aborted_is_counted(self) -> None:
        """Counting a single aborted entry is told from a duplicate by what it adds."""
        story = Story()
        story.aborted(ada=60)
        story.aborted(ada=50)
        second = story.entry(ada=10)
        story.row("ada", 60, 2, second)

        assert story.found("relation")[0] == ("uncommitted-visible", "ada", "app-entries-0@1")

    def test_a_relay_copies_what_was_aborted(self) -> None:
        """A relay that reads uncommitted repeats an aborted record, which is named."""
        story, letters = four_letters()
        aborted = story.aborted(ada=5)
        for letter in [*letters, aborted]:
            story.copy(letter)

        assert story.found("relation") == [("uncommitted-visible", "north", "app-input-0@4")]

    @BOTH_MODES
    def test_offsets_with_gaps(self, mode: str) -> None:
        """Transaction markers take offsets, and nobody misses them."""
        story = Story("relay", mode)
        for _ in range(3):
            story.copy(story.entry(ada=1))
            story.gap(2)

        assert story.found("relation") == []

    def test_two_entries_of_one_amount(self) -> None:
        """Equal amounts are two entries, not a duplicate; and where one is left out, one is
        lost.
        """
        story = Story()
        first, second = story.entry(ada=5), story.entry(ada=5)
        story.row("ada", 5, 1, first)
        story.row("ada", 10, 2, second)
        assert story.found("relation") == []

        story.row("ada", 5, 1, second)

        assert story.found("relation") == [("lost", "ada", "app-entries-0@0")]

    def test_an_entry_that_cancels_itself_out(self) -> None:
        """The balance stays and the postings tell that the entry was applied."""
        story = Story()
        entry = story.entry(("ada", 5), ("ada", -5))
        story.row("ada", 0, 2, entry)

        assert story.found("relation") == []

    @pytest.mark.parametrize(("cents", "held"), [(5, 1), (15, 2), (10, 1), (14, 2)])
    def test_torn_in_the_middle(self, cents: int, held: int) -> None:
        """Several postings to one account are one step: any part of them is torn, in whatever order
        it was taken.
        """
        story = Story()
        entry = story.entry(("ada", 5), ("ada", 10), ("ada", 4))
        story.row("ada", cents, held, entry)
        story.row("ada", 19, 3, entry)

        assert story.found("relation") == [("torn", "ada", "app-entries-0@0")]

    def test_torn_behind_another_entry(self) -> None:
        """Half of a later collection is torn as well, and the state due in its place is told."""
        story = Story()
        story.entry(ada=1)
        second = story.entry(("ada", 5), ("ada", 10))
        story.row("ada", 6, 2, second)
        story.row("ada", 16, 3, second)
        (anomaly,) = story.judged("relation")

        assert (anomaly.name, anomaly.source) == ("torn", "app-entries-0@1")
        assert (anomaly.expected, anomaly.got) == (
            "16, 3, ('app-entries', 0, 1)",
            "6, 2, ('app-entries', 0, 1) at app-balances-0@0",
        )

    def test_an_entry_is_left_out_of_the_sum(self) -> None:
        """A sum that lacks an entry is lost, and the entry it lacks is named, not the one where it
        shows.
        """
        story = Story()
        _, second, third = story.entry(ada=1), story.entry(ada=10), story.entry(ada=100)
        story.row("ada", 101, 2, third)

        assert story.found("relation")[0] == ("lost", "ada", second.at)

    def test_an_entry_is_in_the_sum_twice(self) -> None:
        """A sum that holds an entry twice is duplicated, and that entry is named."""
        story = Story()
        _, second, third = story.entry(ada=1), story.entry(ada=10), story.entry(ada=100)
        story.row("ada", 121, 4, third)

        assert story.found("relation")[0] == ("duplicated", "ada", second.at)

    def test_only_what_came_before_is_blamed(self) -> None:
        """A later entry of the same amount is not to blame for an earlier row, aborted or not."""
        story = Story()
        first = story.entry(ada=10)
        story.aborted(ada=7)
        story.entry(ada=7)
        story.row("ada", 17, 2, first)

        assert story.found("relation")[0] == ("duplicated", "ada", first.at)

    @BOTH_MODES
    def test_an_aborted_output(self, mode: str) -> None:
        """What the design's own transaction took back was never shown."""
        story, (first, second, third) = three_entries(mode)
        story.row("ada", 105, 2, second, visible=False)
        all_rows(story, [first, second, third])

        assert story.found("relation") == []

    def test_a_sum_that_lost_its_cents(self) -> None:
        """A balance rounded to a double is phantom: every posting is counted, the cents are
        wrong.
        """
        story = Story()
        entry = story.entry(ada=2**53 + 1)
        story.row("ada", 2**53, 1, entry)

        assert story.found("relation")[0] == ("phantom", "ada", "app-entries-0@0")

    @pytest.mark.parametrize(
        "value",
        [
            None,
            b"",
            b"[]",
            b'"text"',
            b"\xff",
            b"{}",
            b'{"account":"ada","balance_cents":1.0,"postings":1,"applied":{"topic":"t","partition":0,"offset":0}}',
            b'{"account":"ada","balance_cents":true,"postings":1,"applied":{"topic":"t","partition":0,"offset":0}}',
            b'{"account":"eve","balance_cents":1,"postings":1,"applied":{"topic":"t","partition":0,"offset":0}}',
            b'{"account":7,"balance_cents":1,"postings":1,"applied":{"topic":"t","partition":0,"offset":0}}',
            b'{"account":"ada","balance_cents":1,"postings":1,"applied":{"topic":[],"partition":0,"offset":0}}',
            b'{"account":"ada","balance_cents":1,"postings":1,"applied":{"topic":"t","partition":0,"offset":0},"x":1}',
        ],
    )
    def test_a_row_of_no_contract(self, value: bytes | None) -> None:
        """Whatever is no row of the contract is phantom and named by its own position, never a
        traceback.
        """
        story = Story()
        entry = story.entry(ada=1)
        story.row("ada", 1, 1, entry)
        story.row("ada", 1, 1, entry, value=value)
        (anomaly,) = story.judged("relation")

        assert (anomaly.name, anomaly.key) == ("phantom", "ada")
        assert "app-balances-0@1" in anomaly.text

    def test_a_row_out_of_nowhere(self) -> None:
        """Accounts, positions and keys that no entry gives are phantom."""
        story, (first, second, third) = three_entries()
        all_rows(story, [first, second, third])
        story.row("zoe", 1, 1, first)
        story.row("ada", 1, 1, first, applied=("nowhere", 0, 0))
        story.row("eve", 9, 9, second)

        assert story.found("relation") == [
            ("phantom", "ada", None),
            ("phantom", "eve", "app-entries-0@1"),
            ("phantom", "zoe", "app-entries-0@0"),
        ]

    def test_a_relay_that_changes_something(self) -> None:
        """An output with another key, chain or posting than its input is phantom, and its input is
        named.
        """
        story, letters = four_letters()
        for letter in letters:
            story.copy(letter)
        story.copy(letters[1], key=b"south")
        story.copy(letters[2], value=letters[2].value)  # without the hop
        story.copy(letters[3], hop=("app-input", 0, 2))

        assert story.found("relation") == [
            ("phantom", "north", None),
            ("phantom", "north", "app-input-0@2"),
            ("phantom", "south", "app-input-0@1"),
        ]

    @BOTH_PROGRAMS
    def test_an_output_that_is_no_message(self, program: str) -> None:
        """Bytes that cannot be read are phantom, never a traceback."""
        story = Story(program)
        entry = story.entry(ada=1)
        (story.copy if program == "relay" else lambda e: story.row("ada", 1, 1, e))(entry)
        story.copy(entry, key=b"ada", value=b"\xff\xff")

        assert [name for name, _, _ in story.found("relation")] == ["phantom"]

    def test_upstream_is_recorded_twice(self) -> None:
        """One topic may be the output of one application and the input of the next, and each record
        counts once.
        """
        story, (first, second, third) = three_entries()
        for entry in (first, second, third):
            story.history.add(entry)
        all_rows(story, [first, second, third])
        for row in [e for e in story.history.of(Record) if e.topic == "app-balances"]:
            story.history.add(row)

        assert story.found("relation") == []

    def test_thousands_of_wrong_outputs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A design that is wrong everywhere is judged as fast as others: the log is not folded
        again for each row.
        """
        story = Story()
        entries = [
            story.entry((f"a{number % 500}", 1), (f"b{number % 500}", 1)) for number in range(2000)
        ]
        for number, entry in enumerate(entries):
            story.row(f"a{number % 500}", 7777, number // 500 + 2, entry)

        folds = []

        def counted(inputs: Iterable[Record], *collections: Any, **how: bool) -> States:
            folds.append(how)
            return LEDGER.model(inputs, *collections, **how)

        monkeypatch.setattr(ledger, "model", counted)

        assert len(story.judged("relation")) >= 2000
        assert len(folds) <= 2


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
        """Outputs beyond the commit are what at_least_once does, and what exactly_once forbids."""
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
        """What a shard showed before its restart it does not show again."""
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

    @pytest.mark.parametrize("check", ["fold", "below-the-commit"])
    def test_no_consumer_group(self, check: str) -> None:
        """A design that names no group has no committed input to be judged by: unsupported, for
        this rule alone.
        """
        story = balances("at_least_once", "0123")
        story.settled(group=False)

        with pytest.raises(NotOffered, match="no consumer group"):
            story.judged(check)
        assert story.found("relation") == []

    def test_each_partition_has_its_cut(self) -> None:
        """The committed offset of one partition says nothing of another."""
        story = Story()
        north, south = story.entry(ada=1), story.entry(bob=1, branch="south", partition=1)
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
        """What was committed while an instance ran is no consistent cut, and an older cut is
        over.
        """
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
        north, _ = story.entry(ada=1), story.entry(bob=1, branch="south", partition=1)
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


class TestPromptly:
    """While the input rests, its outcome is visible in time."""

    @BOTH_MODES
    def test_in_time(self, mode: str) -> None:
        """Every key stands at its last state when the outputs are looked at."""
        story, entries = three_entries(mode)
        all_rows(story, entries)
        story.rests()

        assert story.found("promptly") == []

    @BOTH_MODES
    def test_late(self, mode: str) -> None:
        """A key that still stands at an older state is late."""
        story = balances(mode, "012")
        story.rests(looked_ms=2100)
        (anomaly,) = story.judged("promptly")

        assert (anomaly.name, anomaly.key, anomaly.source) == ("late", "ada", "app-entries-0@3")
        assert "2100 ms" in anomaly.text

    def test_once_is_enough(self) -> None:
        """A state that was shown in time was visible in time, also where at_least_once repeats an
        older one behind it.
        """
        story = balances("at_least_once", "0123", "1")
        story.rests()

        assert story.found("promptly") == []

    @BOTH_PROGRAMS
    def test_never(self, program: str) -> None:
        """A design that shows nothing is late for every key."""
        story = Story(program)
        story.entry(ada=1)
        story.rests(looked_ms=2100)

        assert [name for name, _, _ in story.found("promptly")] == ["late"]

    def test_aborted_at_the_end(self) -> None:
        """Nothing is due for an aborted entry, also where it is the last thing in its partition."""
        story = balances("exactly_once", "0123")
        story.aborted(ada=7)
        story.rests()

        assert story.found("promptly") == []

    @pytest.mark.parametrize("outputs", ["", "0123"])
    def test_the_canary_is_slow(self, outputs: str) -> None:
        """Where a control record takes more than half the tolerance nothing can be said, for or
        against.
        """
        story = balances("exactly_once", outputs)
        story.rests(canary_ms=1050)
        assert [name for name, _, _ in story.found("promptly")] == ([] if outputs else ["late"])

        story.rests(canary_ms=1051)

        with pytest.raises(Inconclusive, match="1051 ms"):
            story.judged("promptly")

    @pytest.mark.parametrize("outputs", ["012", "0123"])
    def test_others_took_the_cores(self, outputs: str) -> None:
        """What is late while others took over a quarter of the cores is nobody's known fault; what
        is in time is in time.
        """
        story = balances("exactly_once", outputs)
        on_time = outputs == "0123"
        story.rests(others=0.25)
        assert [name for name, _, _ in story.found("promptly")] == ([] if on_time else ["late"])

        story.rests(others=0.26)

        with nullcontext() if on_time else pytest.raises(Inconclusive, match="26% of the cores"):
            assert story.found("promptly") == []

    def test_the_last_pause_counts(self) -> None:
        """An earlier pause, slow or not, is over."""
        story = balances("exactly_once", "0123")
        story.rests(canary_ms=5000)
        story.rests()

        assert story.found("promptly") == []


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
        """What is no output of the program is named by others, however often it comes."""
        story = balances("exactly_once", "0")
        for _ in range(2):
            story.row("ada", 999, 1, next(iter(story.history.of(Record))))

        assert story.found("once") == []


class TestPaced:
    """No more transactions end than intervals begin."""

    @staticmethod
    def life(ended: int, *, waves: int = 6) -> Story:
        """A life of 1,500 ms, in which three intervals may begin, with so many ends of transactions
        in it.
        """
        story = Story("batcher", commit_interval_ms=1000, threshold=1, interval_ms=1000)
        story._happens("a", "started", at_ms=100)
        for number, visitor in enumerate("abcdef"[:waves], 1):
            story.visit("ada", visitor, seen_ms=200 * number)
            story.out("ada", visitor, at_ms=1600)
        for number in range(ended):
            story.batch(2 * number + 1, 2 * number + 1, 7, control="commit")
        return story

    @pytest.mark.parametrize(("ended", "found"), [(3, []), (4, [("early", None, None)])])
    def test_one_an_interval(self, ended: int, found: list[tuple[str, None, None]]) -> None:
        """Three may end, and a fourth is one too many: the start, and two ticks of a clock that
        strikes a moment later.
        """
        assert self.life(ended).found("paced") == found

    def test_nothing_was_at_stake(self) -> None:
        """Where no more waves came than transactions may end, nothing had to wait."""
        with pytest.raises(Inconclusive, match="no more waves"):
            self.life(3, waves=2).judged("paced")


class TestBelowTheCommit:
    """Nothing comes again whose input was committed at the kill."""

    def killed_at(self, below: int, again: str) -> Story:
        """Killed with this much committed; these states come after the restart."""
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
        """What was not committed may come again."""
        assert self.killed_at(below, again).found("below-the-commit") == []

    @pytest.mark.parametrize(
        ("below", "again", "repeated"), [(2, "123", [1]), (3, "0123", [0, 1, 2])]
    )
    def test_below(self, below: int, again: str, repeated: list[int]) -> None:
        """What was committed may not, and each is named."""
        expected = [("duplicated", "ada", f"app-entries-0@{offset}") for offset in repeated]

        assert self.killed_at(below, again).found("below-the-commit") == expected

    def test_before_the_kill(self) -> None:
        """A repeat that was there before the kill is no repeat of the restart."""
        story = balances("at_least_once", "0112")
        story.kill()
        story.settled(3)
        story.start()

        assert story.found("below-the-commit") == []


class TestSilent:
    """Nothing of the paused instance is visible."""

    def taken_over(self, *, zombie: tuple[int, int] = (7, 0), stable: int = 1) -> Story:
        """Producer 7 shows one row, is paused in its next transaction, and producer 7 of epoch 1
        takes over.
        """
        story = Story()
        story.start()
        entries = [story.entry(ada=cents) for cents in (1, 10, 100)]
        story.row("ada", 1, 1, entries[0])
        story.batch(0, 0, 7)
        story.paused_with_a_transaction_open(zombie, stable=stable)
        story.start("b")
        story.batch(1, 1, 7)  # open at the pause, and aborted by the successor
        story.batch(2, 2, 7, epoch=1, control="abort")
        story.row("ada", 11, 2, entries[1], offset=3)
        story.row("ada", 111, 3, entries[2], offset=4)
        story.batch(3, 4, 7, epoch=1)
        story.batch(5, 5, 7, epoch=1, control="commit")
        story.ends(6)
        story.resume()
        return story

    def test_fenced(self) -> None:
        """What the zombie had open is aborted, what it showed before is its own, and nothing
        follows.
        """
        assert self.taken_over().found("silent") == []

    def test_a_marker_follows(self) -> None:
        """Markers of a settled transaction are no output."""
        story = self.taken_over()
        story.batch(6, 6, 7, epoch=1, control="abort")

        assert story.found("silent") == []

    def test_its_transaction_becomes_visible(self) -> None:
        """A zombie that commits what it had open is caught by its producer id and epoch, below the
        recorded end too.
        """
        story = self.taken_over()
        story.row("ada", 11, 2, next(iter(story.history.of(Record))), offset=1)
        (anomaly,) = story.judged("silent")

        assert (anomaly.name, anomaly.key, anomaly.got) == (
            "fenced-but-emitting",
            "ada",
            "app-balances-0@1",
        )
        assert "producer 7, epoch 0" in anomaly.text

    @pytest.mark.parametrize(("producer", "epoch"), [(7, 0), (9, 0)])
    def test_it_appends(self, producer: int, epoch: int) -> None:
        """Any record at or above the recorded end is caught, visible or not, whoever wrote it."""
        story = self.taken_over()
        story.batch(6, 6, producer, epoch)

        assert [name for name, _, _ in story.found("silent")] == ["fenced-but-emitting"]

    def test_a_file_holds_the_same(self, tmp_path: Any) -> None:
        """Writers are pairs in a file as well."""
        story = self.taken_over()
        story.row("ada", 11, 2, next(iter(story.history.of(Record))), offset=1)
        story.claims("silent")

        from upheld.judging.rejudge import judge  # noqa: PLC0415

        assert judge(story.recorded(tmp_path / "h.jsonl")).anomalies == story.judged("silent")


class TestOwners:
    """No partition has two owners at a time."""

    def shared(self, writers: list[int], leaves: str = "b") -> Story:
        """Two instances run, producers 7 and 8 write ada's rows in this order, and one leaves."""
        story = Story()
        story.start("a")
        story.start("b")
        for number, producer in enumerate(writers):
            story.row("ada", number + 1, number + 1, story.entry(ada=1))
            story.batch(number, number, producer)
        story.stop(leaves)
        return story

    @pytest.mark.parametrize("writers", [[7, 7, 8, 8], [7, 8, 7, 7], [7, 8, 7, 8]])
    def test_it_passes_with_who_comes_and_goes(self, writers: list[int]) -> None:
        """Two came and one went, so a partition may have passed three times."""
        assert self.shared(writers).found("owners") == []

    def test_it_goes_back_and_forth(self) -> None:
        """Two that write what came of one partition by turns both own it."""
        (anomaly,) = self.shared([7, 8, 7, 8, 7]).judged("owners")

        assert (anomaly.name, anomaly.key, anomaly.got) == (
            "fenced-but-emitting",
            "ada",
            "app-balances-0@4",
        )
        assert (
            "app-entries-0 passed 4 times between producers, at last between 8 and 7"
            in anomaly.text
        )
        assert "came and went 3 times" in anomaly.text

    def test_each_output_partition_has_an_order_of_its_own(self) -> None:
        """What came of one input partition lies on several output partitions, and no two of these
        are compared.
        """
        story = self.shared([7, 7, 7, 8, 8])
        for number, producer in enumerate([7, 7, 8]):
            story.row("bob", number + 1, number + 1, story.entry(bob=1), partition=1)
            story.batch(number, number, producer, partition=1)

        assert story.found("owners") == []

    def test_each_input_partition_has_an_owner(self) -> None:
        """Two producers that take turns on one output partition may each own an input partition."""
        story = Story()
        story.start("a")
        story.start("b")
        for number in range(4):
            for partition, account in enumerate(("ada", "bob")):
                story.row(
                    account, number + 1, number + 1, story.entry((account, 1), partition=partition)
                )
                story.batch(2 * number + partition, 2 * number + partition, 7 + partition)

        assert story.found("owners") == []

    def test_one_transactional_id_has_one_owner_at_a_time(self) -> None:
        """Who took a producer id over has a later epoch, and Kafka has fenced whoever had it
        before.
        """
        story = self.shared([7, 7])
        story.row("ada", 3, 3, story.entry(ada=1))
        story.batch(2, 2, 7, epoch=1)

        assert story.found("owners") == []

    def test_one_wrote_it_all(self) -> None:
        """Where one producer wrote everything, nothing was shared and nothing is shown."""
        with pytest.raises(Inconclusive, match="one producer"):
            self.shared([7, 7, 7]).judged("owners")

    def test_producers_without_ids(self) -> None:
        """Who does not say who he is cannot be told apart."""
        with pytest.raises(NotOffered, match="no ids"):
            self.shared([-1, -1]).judged("owners")


class TestRecovered:
    """A new output is visible in time after a cold start."""

    @pytest.mark.parametrize(
        ("after_ms", "found"), [(2100, []), (2101, ["late"]), (None, ["late"])]
    )
    def test_the_bound(self, after_ms: int | None, found: list[str]) -> None:
        """The bound itself is in time; later, or never, is late."""
        story = Story()
        if after_ms:
            story.recovers(after_ms)
        story.rests(looked_ms=after_ms or 2150)

        assert [name for name, _, _ in story.found("recovered")] == found

    def test_others_had_the_cores(self) -> None:
        """What is late while others took the cores proves nothing."""
        story = Story()
        story.rests(looked_ms=2150, others=0.5)

        with pytest.raises(Inconclusive):
            story.judged("recovered")


class TestAvailable:
    """All but one in so many states are visible within the service level's ten seconds."""

    def four(self, *seen_ms: int) -> Story:
        """Four entries of ada, at 0 ms, and a row of each so far that is seen."""
        story = Story()
        story.start()
        entries = [story.entry(ada=1) for _ in range(4)]
        for number, (entry, at_ms) in enumerate(zip(entries, seen_ms, strict=False), 1):
            story.row("ada", number, number, entry, seen_ms=at_ms)
        story.rests()
        return story

    @pytest.mark.parametrize(
        ("seen_ms", "found"),
        [
            ((10, 10, 10, 10_000), []),
            ((10, 10, 10_000, 10_001), []),  # one of four may
            ((10, 10, 10_001, 10_001), ["late", "late"]),
            ((10, 10), ["late", "late"]),
        ],
    )
    def test_the_bound(self, seen_ms: tuple[int, ...], found: list[str]) -> None:
        """The bound itself is in time; one state more than may be is late, or never visible."""
        assert [name for name, _, _ in self.four(*seen_ms).found("available", of=4)] == found

    def test_a_later_row_counts_it_in(self) -> None:
        """A design that conflates shows what it passed over."""
        story = Story()
        story.start()
        *_, last = [story.entry(ada=1) for _ in range(4)]
        story.row("ada", 4, 4, last, seen_ms=10_000)
        story.rests()

        assert story.found("available", of=4) == []

    def test_too_few(self) -> None:
        """Four states do not show whether one in five is late."""
        with pytest.raises(Inconclusive, match="4 states"):
            self.four(10, 10, 10, 10).judged("available", of=5)


class TestReleased:
    """Readers pass the transaction of a dead instance within its bound."""

    @pytest.mark.parametrize(
        ("stable_ms", "expected"), [(0, []), (4500, []), (4501, [("stuck", None, None)])]
    )
    def test_the_bound(self, stable_ms: int, expected: list[Found]) -> None:
        """The wait is measured until the last stable offset is the end; the bound itself is in
        time.
        """
        story = Story()
        story.settled(0, stable_ms=9999)
        story.settled(0, stable_ms=stable_ms, down=False)

        assert story.found("released", bound_ms=4500) == expected


class TestPreserved:
    """Every output carries its input's id, timestamp, headers and chain."""

    HEADERS = (("trace", b"1"), ("teller", b"x"), ("teller", b"x"), ("teller", b""), ("none", None))

    def relay_with(self, **changes: Any) -> Story:
        """A relay that copies one record with headers, a name twice among them."""
        story = Story("relay")
        story.copy(story.entry(ada=1, headers=self.HEADERS, via=[("up", 0, 3)]), **changes)
        return story

    @BOTH_MODES
    def test_a_ledger_keeps_them(self, mode: str) -> None:
        """Id, chain and timestamp of the last entry applied are in every row."""
        story = Story("ledger", mode)
        first, second = (
            story.entry(ada=1, via=[("up", 0, 3)]),
            story.entry(ada=1, via=[("up", 0, 4)]),
        )
        story.row("ada", 1, 1, first)
        story.row("ada", 2, 2, second)

        assert story.found("preserved") == []

    def test_a_relay_keeps_them(self) -> None:
        """Headers may come twice, be empty or null, and a relay may add its own."""
        assert self.relay_with().found("preserved") == []
        assert (
            self.relay_with(headers=(("own", b"1"), *self.HEADERS, ("own", b"2"))).found(
                "preserved"
            )
            == []
        )

    @pytest.mark.parametrize("dropped", range(5))
    def test_a_header_is_lost(self, dropped: int) -> None:
        """Each header is missed, also the second of two equal ones."""
        kept = (*self.HEADERS[:dropped], *self.HEADERS[dropped + 1 :])

        assert self.relay_with(headers=kept).found("preserved") == [
            ("lost", "north", "app-input-0@0")
        ]

    def test_headers_change_places(self) -> None:
        """Headers are a list: their order is kept."""
        assert self.relay_with(headers=self.HEADERS[::-1]).found("preserved") == [
            ("lost", "north", "app-input-0@0")
        ]

    @BOTH_PROGRAMS
    def test_the_time_of_processing(self, program: str) -> None:
        """A timestamp of its own is phantom, and the entry is named."""
        story = Story(program)
        entry = story.entry(ada=1)
        if program == "relay":
            story.copy(entry, timestamp_ms=1)
        else:
            story.row("ada", 1, 1, entry, timestamp_ms=1)
        (anomaly,) = story.judged("preserved")

        assert (anomaly.name, anomaly.source) == ("phantom", entry.at)
        assert "timestamp 1 instead of" in anomaly.text

    @pytest.mark.parametrize(
        "headers",
        [
            (),
            (
                ("id", b"other"),
                ("chain", Envelope(chain=[Hop(topic="app-entries")]).SerializeToString()),
            ),
            (("id", b"e0"),),
            (("id", b"e0"), ("chain", None)),
            (("id", b"e0"), ("chain", b"\xff")),
            (
                ("id", b"e0"),
                ("chain", Envelope(chain=[Hop(topic="app-entries", offset=1)]).SerializeToString()),
            ),
            (
                ("id", None),
                ("chain", Envelope(chain=[Hop(topic="app-entries")]).SerializeToString()),
            ),
        ],
    )
    def test_a_ledger_makes_a_new_envelope(self, headers: Any) -> None:
        """A row with another id or chain, none, or one that cannot be read, is phantom."""
        story = Story()
        entry = story.entry(ada=1)
        story.row("ada", 1, 1, entry, headers=headers)

        assert story.found("preserved") == [("phantom", "ada", "app-entries-0@0")]

    @BOTH_PROGRAMS
    def test_nothing_is_preserved_by_silence(self, program: str) -> None:
        """A design that shows nothing of a key has lost what it should carry."""
        story = Story(program)
        story.entry(ada=1)

        assert [name for name, _, _ in story.found("preserved")] == ["lost"]

    def test_a_wrong_row_is_named_as_such(self) -> None:
        """What is no state has no lineage to compare, and is not passed over."""
        story = Story()
        entry = story.entry(("ada", 1), ("ada", 2))
        story.row("ada", 1, 1, entry)

        assert story.found("preserved") == [("torn", "ada", "app-entries-0@0")]


class TestSameRows:
    """Both modes leave the same last rows."""

    def both(self, cents: int | None, other_cents: int | None) -> Story:
        """One entry for each mode, behind a marker in the one input and not in the other."""
        story = Story()
        other = story.beside("at_least_once")
        entry = story.entry(ada=5)
        other.gap()
        twin = other.entry(ada=5)
        if cents is not None:
            story.row("ada", cents, 1, entry)
        if other_cents is not None:
            other.row("ada", 1, 7, twin)
            other.row("ada", other_cents, 1, twin)
        return story

    @BOTH_PROGRAMS
    def test_the_same(self, program: str) -> None:
        """Rows agree although they stand at other positions of other topics."""
        story = Story(program)
        other = story.beside("at_least_once")
        for each in (story, other):
            each.gap(1 if each is other else 0)
            entry = each.entry(ada=5, via=[("up", 0, 3)])
            if program == "relay":
                each.copy(entry)
            else:
                each.row("ada", 5, 1, entry)

        assert story.found("same-rows") == []

    def test_only_the_last_row_counts(self) -> None:
        """What was shown on the way is the relation's business."""
        assert self.both(5, 5).found("same-rows") == []

    def test_another_row(self) -> None:
        """A row that differs is phantom, and both are told."""
        (anomaly,) = self.both(5, 6).judged("same-rows")

        assert (anomaly.name, anomaly.key) == ("phantom", "ada")
        assert "in app and as" in anomaly.text

    @pytest.mark.parametrize(
        ("cents", "other_cents", "silent"),
        [(5, None, "in other"), (None, 5, "in app"), (None, None, "in app and other")],
    )
    def test_no_row(self, cents: int | None, other_cents: int | None, silent: str) -> None:
        """A row that one of them lacks is lost, and two silent ones do not agree."""
        (anomaly,) = self.both(cents, other_cents).judged("same-rows")

        assert (anomaly.name, anomaly.key) == ("lost", "ada")
        assert anomaly.text.endswith(silent)

    def test_a_row_that_cannot_be_read(self) -> None:
        """What is no row of the contract is the same as nothing."""
        story = self.both(5, 5)
        entry = next(iter(story.history.of(Record)))
        story.row("ada", 5, 1, entry, value=b"?")

        assert story.found("same-rows") == [("phantom", "ada", None)]


class TestSideEffects:
    """Nothing else changes on the broker."""

    def appeared(
        self, *topics: str, groups: tuple[str, ...] = (), ours: bool = True, **start: Any
    ) -> Story:
        """These names appear beside an older topic and an older group."""
        story = Story(names_are_ours=ours)
        story.names("app-entries", "app-balances", "old", groups=("old-group",))
        story.start(**start)
        story.names("app-entries", "app-balances", "old", *topics, groups=("old-group", *groups))
        return story

    def test_nothing(self) -> None:
        """The same names, and the group that `ready` named."""
        assert self.appeared(groups=("app-group",)).found("side-effects") == []
        assert self.appeared(groups=("its-own",), group="its-own").found("side-effects") == []

    def test_declared(self) -> None:
        """A topic that begins with the application id and was declared may appear, and a group that
        begins with it.
        """
        story = self.appeared(
            "app-changelog", groups=("app-leader",), internal_topics=("app-changelog",)
        )

        assert story.found("side-effects") == []

    @pytest.mark.parametrize(
        ("topic", "declared", "why"),
        [
            ("app-changelog", (), "not declared"),
            ("foreign", (), "does not begin"),
            ("foreign", ("foreign",), "does not begin"),
        ],
    )
    def test_leaked(self, topic: str, declared: tuple[str, ...], why: str) -> None:
        """Any other topic is leaked, and it is told which rule it broke."""
        (anomaly,) = self.appeared(topic, internal_topics=declared).judged("side-effects")

        assert anomaly.name == "leaked-topic"
        assert topic in anomaly.text
        assert why in anomaly.text

    def test_a_leaked_transactional_id(self) -> None:
        """A transactional id that does not begin with the application id belongs to nobody; one
        that was there is not new.
        """
        story = Story()
        story.names("app-entries", "app-balances", ids=("old",))
        story.names("app-entries", "app-balances", ids=("old", "app-writer", "host-1"))
        (anomaly,) = story.judged("side-effects")

        assert anomaly.name == "leaked-topic"
        assert "transactional id host-1" in anomaly.text

    def test_a_leaked_group(self) -> None:
        """A group that nobody named and that does not begin with the application id is leaked."""
        assert self.appeared(groups=("foreign",)).found("side-effects") == [
            ("leaked-topic", None, None)
        ]

    def test_a_broker_that_others_use(self) -> None:
        """Foreign names are ignored there; what begins with the application id or was declared is
        not.
        """
        assert self.appeared("foreign", groups=("foreign",), ours=False).found("side-effects") == []
        assert self.appeared("app-changelog", ours=False).found("side-effects") == [
            ("leaked-topic", None, None)
        ]
        declared = self.appeared("foreign", ours=False, internal_topics=("foreign",))
        assert declared.found("side-effects") == [("leaked-topic", None, None)]

    def test_a_second_application(self) -> None:
        """Topics that the harness makes for a later application are no side effect of the
        design.
        """
        story = self.appeared()
        story.beside("at_least_once")
        story.names("app-entries", "app-balances", "old", "other-entries", "other-balances")

        assert story.found("side-effects") == []


class TestHandedOver:
    """Of two clusters only the active one writes."""

    def switched(self, *writers: int, at: int = 2, first: int = 1) -> Story:
        """Producers write ada's rows in this order; the second cluster stands by from the second
        row on.
        """
        story = Story()
        story.start()
        for number, producer in enumerate(writers):
            if number == first:
                story.stands_by()
            if number == at:
                story.ends(number, Look.HANDED_OVER.text)
            story.row("ada", number + 1, number + 1, story.entry(ada=1))
            story.batch(number, number, producer)
        return story

    def test_one_after_the_other(self) -> None:
        """The old one writes up to the switch, also beside one that stands by; the new one from
        there on.
        """
        assert self.switched(7, 7, 8, 8).found("handed-over") == []

    @pytest.mark.parametrize(
        ("writers", "who"),
        [((7, 8, 8, 8), "that stands by"), ((7, 7, 8, 7), "that has handed over")],
    )
    def test_out_of_turn(self, writers: tuple[int, ...], who: str) -> None:
        """Who writes before it is its turn, or after it was, is told from the other."""
        (anomaly,) = self.switched(*writers).judged("handed-over")

        assert (anomaly.name, who in anomaly.text) == ("fenced-but-emitting", True)

    def test_one_wrote_nothing(self) -> None:
        """A cluster that never wrote was silent, and shows nothing."""
        story = self.switched(7, 7)
        story.ends(2, Look.HANDED_OVER.text)

        with pytest.raises(Inconclusive):
            story.judged("handed-over")


class TestNoticed:
    """Of two deployments under the same ids one stops loudly, or is refused."""

    @pytest.mark.parametrize("who", ["a", "b", None])
    def test_who_stops(self, who: str | None) -> None:
        """Either of the two may; where neither does, both go on under one name."""
        story = Story()
        story.start()
        story.start("b")
        if who:
            story.failed("fenced: by another one", who)
        story.kill("a")

        assert [name for name, *_ in story.found("noticed")] == (
            [] if who else ["fenced-but-emitting"]
        )

    def test_a_failure_before(self) -> None:
        """What failed before the second one began has nothing to do with it."""
        story = Story()
        story.start()
        story.failed("storage: the disk is full")
        story.start()
        story.start("b")

        assert [name for name, *_ in story.found("noticed")] == ["fenced-but-emitting"]


def test_every_check_names_its_anomalies() -> None:
    """Every check has its anomalies, for `explain`, and there is a class of tests for every
    check.
    """
    classes = [
        name
        for module in (
            test_dead_letters,
            test_effects,
            test_flush,
            test_joins,
            test_lag,
            test_pulse,
            test_stores,
        )
        for name in {**globals(), **vars(module)}
        if name.startswith("Test")
    ]
    tested = {name.removeprefix("Test").lower() for name in classes}

    assert set(ANOMALIES) == set(CHECKS)
    assert tested == {check.replace("-", "") for check in CHECKS}


def test_two_checks_of_one_name_are_refused() -> None:
    """The second would take the place of the first in every history."""
    with pytest.raises(ValueError, match="two checks are called 'fold'"):
        check("fold", anomalies=("torn",))(lambda *_: [])
