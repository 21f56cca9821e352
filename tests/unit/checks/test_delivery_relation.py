"""The relation of `ledger` and `relay`, on hand-written histories."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from histories import Story
from stories import (
    BOTH_MODES,
    BOTH_PROGRAMS,
    all_rows,
    balances,
    four_letters,
    relayed,
    three_entries,
)

from upheld.history.events import Notice, Record
from upheld.programs import States, ledger
from upheld.programs.ledger import LEDGER


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
        [("0123", None), ("023", 1), ("123", 0), ("3", 0), ("013", 2), ("012", 3)],
    )
    def test_a_ledger_that_emits_every_state(
        self, mode: str, outputs: str, missing: int | None
    ) -> None:
        """If a design declares that it emits every state, it skips none."""
        expected = [] if missing is None else [("lost", "ada", f"app-entries-0@{missing}")]

        assert balances(mode, outputs).emitting_every_state().found("relation") == expected

    def test_every_state_comes_again_after_a_crash(self) -> None:
        """Under at_least_once the design may step back, and skips nothing from there on."""
        whole = balances("at_least_once", "012", "123").emitting_every_state()
        holed = balances("at_least_once", "01", "13").emitting_every_state()

        assert whole.found("relation") == []
        assert holed.found("relation") == [("lost", "ada", "app-entries-0@2")]

    @BOTH_MODES
    @pytest.mark.parametrize(
        ("outputs", "missing"),
        [("0123", None), ("023", 1), ("123", 0), ("03", 1), ("012", 3), ("", 3)],
    )
    def test_a_relay_skips_nothing(self, mode: str, outputs: str, missing: int | None) -> None:
        """A relay gives one record for one record.

        The first one that is missing is named by its position.
        """
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
        """At_least_once may step back once behind each new start.

        It may not without one, or before it.
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
        """A resumed instance may repeat its successor's states under at_least_once."""
        story = balances("at_least_once", "0123")
        story.resume()
        entries = list(story.history.of(Record))[:4]
        story.row("ada", 111, 3, entries[2])
        story.row("ada", 1111, 4, entries[3])

        assert story.found("relation") == []

    @pytest.mark.parametrize(("beside", "found"), [(True, set()), (False, {"reordered"})])
    def test_a_step_back_behind_an_instance_that_left(self, beside: bool, found: set[str]) -> None:
        """An instance that takes over from another one may step back once.

        If no other instance ran, none took over.
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
        """A repeat by a relay upstream changes nothing and emits nothing.

        So it is when a whole run steps back.
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
        """A design that counts a repeat of a relay upstream is caught as duplicated.

        The first hop that the repeat came by does not hide it.
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


class TestRelationUpstream:
    """The claim behind another stage, and among aborted records."""

    @pytest.mark.parametrize("before", [("up", 0, 7), ("up", 0, 7, b"old")])
    @pytest.mark.parametrize("after", [("down", 0, 3), ("up", 1, 3), ("up", 0, 3, b"new")])
    def test_the_first_hop_moves(self, before: Any, after: Any) -> None:
        """Another topic, partition or topic id starts again at any offset.

        A repeat there is discarded again.
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
        """Behind two relays the first hop counts; the second is new for every repeat."""
        story = Story()
        first = story.entry(ada=1, via=[("up", 0, 7), ("middle", 0, 0)])
        story.entry(ada=1, via=[("up", 0, 7), ("middle", 0, 1)])
        story.row("ada", 1, 1, first)

        assert story.found("relation") == []

    @BOTH_MODES
    def test_aborted_between(self, mode: str) -> None:
        """Aborted entries count for nothing, and nothing is missing for them."""
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
        """A design that reads uncommitted entries is wrong from the first one on.

        That entry is named.
        """
        story = Story()
        first = story.entry(ada=1)
        aborted = story.aborted(ada=50)
        second = story.entry(ada=10)
        _ = story.aborted(ada=60)
        last = story.entry(ada=100)
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


class TestRelationOfSums:
    """The claim on sums, and on outputs that no input gives."""

    def test_two_entries_of_one_amount(self) -> None:
        """Equal amounts are two entries, not a duplicate.

        If one is left out, one is lost.
        """
        story = Story()
        first = story.entry(ada=5)
        second = story.entry(ada=5)
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
        """Several postings to one account are one step.

        Any part of them is torn, in whatever order it was taken.
        """
        story = Story()
        entry = story.entry(("ada", 5), ("ada", 10), ("ada", 4))
        story.row("ada", cents, held, entry)
        story.row("ada", 19, 3, entry)

        assert story.found("relation") == [("torn", "ada", "app-entries-0@0")]

    def test_torn_behind_another_entry(self) -> None:
        """Half of a later entry is torn as well, and the state due in its place is told."""
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
        """A sum that lacks an entry is lost.

        The entry that it lacks is named, not the one where it shows.
        """
        story = Story()
        _ = story.entry(ada=1)
        second = story.entry(ada=10)
        third = story.entry(ada=100)
        story.row("ada", 101, 2, third)

        assert story.found("relation")[0] == ("lost", "ada", second.at)

    def test_an_entry_is_in_the_sum_twice(self) -> None:
        """A sum that holds an entry twice is duplicated, and that entry is named."""
        story = Story()
        _ = story.entry(ada=1)
        second = story.entry(ada=10)
        third = story.entry(ada=100)
        story.row("ada", 121, 4, third)

        assert story.found("relation")[0] == ("duplicated", "ada", second.at)

    def test_only_what_came_before_is_blamed(self) -> None:
        """A later entry of the same amount is not blamed for an earlier row.

        So it is for an aborted entry too.
        """
        story = Story()
        first = story.entry(ada=10)
        story.aborted(ada=7)
        story.entry(ada=7)
        story.row("ada", 17, 2, first)

        assert story.found("relation")[0] == ("duplicated", "ada", first.at)

    @BOTH_MODES
    def test_an_aborted_output(self, mode: str) -> None:
        """An output that the design's own transaction took back was never shown."""
        story, (first, second, third) = three_entries(mode)
        story.row("ada", 105, 2, second, visible=False)
        all_rows(story, [first, second, third])

        assert story.found("relation") == []

    def test_a_sum_that_lost_its_cents(self) -> None:
        """A balance rounded to a double is phantom.

        Every posting is counted, and the cents are wrong.
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
            b'{"account":"ada","balance_cents":1.0,"postings":1,'
            b'"applied":{"topic":"t","partition":0,"offset":0}}',
            b'{"account":"ada","balance_cents":true,"postings":1,'
            b'"applied":{"topic":"t","partition":0,"offset":0}}',
            b'{"account":"eve","balance_cents":1,"postings":1,'
            b'"applied":{"topic":"t","partition":0,"offset":0}}',
            b'{"account":7,"balance_cents":1,"postings":1,'
            b'"applied":{"topic":"t","partition":0,"offset":0}}',
            b'{"account":"ada","balance_cents":1,"postings":1,'
            b'"applied":{"topic":[],"partition":0,"offset":0}}',
            b'{"account":"ada","balance_cents":1,"postings":1,'
            b'"applied":{"topic":"t","partition":0,"offset":0},"x":1}',
        ],
    )
    def test_a_row_of_no_contract(self, value: bytes | None) -> None:
        """A row against the contract is phantom and named by its own position.

        It never ends in a traceback.
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
        """An output with another key, chain or posting than its input is phantom.

        Its input is named.
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
        """A topic may be the output of one application and the input of the next.

        Each record counts once.
        """
        story, (first, second, third) = three_entries()
        for entry in (first, second, third):
            story.history.add(entry)
        all_rows(story, [first, second, third])
        for row in [e for e in story.history.of(Record) if e.topic == "app-balances"]:
            story.history.add(row)

        assert story.found("relation") == []

    def test_thousands_of_wrong_outputs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A design that is wrong everywhere is judged as fast as others.

        The log is not folded again for each row.
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


@pytest.mark.parametrize(
    ("mode", "told_ms", "found"),
    [
        ("at_least_once", 90, set()),
        ("at_least_once", 110, {"reordered"}),
        ("exactly_once", 90, {"duplicated"}),
    ],
)
def test_a_step_back_after_a_recovery(mode: str, told_ms: int, found: set[str]) -> None:
    """An engine that began again in its process says so before it repeats an output."""
    story = balances(mode, "012")
    entries = list(story.history.of(Record))
    story.row("ada", 11, 2, entries[1], seen_ms=100)
    story.row("ada", 111, 3, entries[2], seen_ms=100)
    story.row("ada", 1111, 4, entries[3], seen_ms=100)
    # It may be recorded after the outputs.
    story.history.add(Notice(at_ms=told_ms, application="app", name="a", code="recovered"))

    assert {name for name, _, _ in story.found("relation")} == found
