"""Records that cannot be read are dead letters, on hand-written histories."""

from typing import Any

import pytest
from histories import Found, Story

from upheld.history.events import Record
from upheld.verdicts import Inconclusive

# A letter's own names are no obstacle.
HEADERS = (
    ("trace", b"1"),
    ("reason", b""),
    ("trace", None),
    ("offset", b"7"),
)
# Of the second one.
OWN = (
    ("reason", b"why"),
    ("topic", b"app-entries"),
    ("partition", b"0"),
    ("offset", b"2"),
)
# The same place, as Kafka Streams writes it.
BY_STREAMS = (
    ("__streams.errors.exception", b"java.lang.Exception"),
    ("__streams.errors.message", None),
    ("__streams.errors.stacktrace", b"\tat A.b"),
    ("__streams.errors.topic", b"app-entries"),
    ("__streams.errors.partition", b"0"),
    ("__streams.errors.offset", b"2"),
)


def spoiled(mode: str = "exactly_once", **options: Any) -> tuple[Story, list[Record]]:
    """Tell a ledger whose input holds an entry between three unreadable records.

    The attempt of one more unreadable record was aborted.
    """
    story = Story("ledger", mode, sets_aside=True, **options)
    story.start()
    first = story.spoiled(b"\x0a\x05abc")
    _ = story.entry(ada=5)
    second = story.spoiled(None, headers=HEADERS)
    story.spoiled(b"{}", visible=False)
    return story, [first, second, story.spoiled(key=None, headers=HEADERS, partition=1)]


class TestDeadLetters:
    """All unreadable records are dead letters, as they were, and nothing else is."""

    @pytest.mark.parametrize("mode", ["exactly_once", "at_least_once"])
    def test_all_that_cannot_be_read(self, mode: str) -> None:
        """An unreadable record is a dead letter whatever its flaw, in any order.

        Its old headers stand before the ones that it got.
        """
        story, records = spoiled(mode)
        for record in reversed(records):
            story.letter(record)

        assert story.found("dead-letters") == []

    def test_dropped(self) -> None:
        """A record that was passed over without a word is lost."""
        story, (first, second, third) = spoiled()
        story.letter(second)

        assert story.found("dead-letters") == [("lost", "north", first.at), ("lost", "", third.at)]

    @pytest.mark.parametrize(
        ("mode", "found"), [("exactly_once", ["duplicated"]), ("at_least_once", [])]
    )
    def test_twice(self, mode: str, found: list[str]) -> None:
        """Once is what exactly_once says."""
        story, records = spoiled(mode)
        for record in (*records, records[1]):
            story.letter(record)

        assert [name for name, *_ in story.found("dead-letters")] == found
        assert {source for *_, source in story.found("dead-letters")} <= {records[1].at}

    @pytest.mark.parametrize(
        ("changes", "name"),
        [
            ({"key": b"south"}, "phantom"),
            ({"value": b""}, "phantom"),  # null is null
            ({"reason": b""}, "lost"),
            ({"headers": OWN}, "lost"),
            ({"headers": (*reversed(HEADERS), *OWN)}, "lost"),
            ({"headers": (*HEADERS[1:], *OWN)}, "lost"),
            ({"headers": (*HEADERS, ("seen", b"1"), *OWN)}, "phantom"),
        ],
    )
    def test_changed(self, changes: dict[str, Any], name: str) -> None:
        """A letter is the record, with its headers in their order, and the four."""
        story, (first, second, third) = spoiled()
        story.letter(first)
        story.letter(second, **changes)
        story.letter(third)

        assert story.found("dead-letters") == [(name, "north", second.at)]

    @pytest.mark.parametrize("mode", ["exactly_once", "at_least_once"])
    def test_as_kafka_streams_writes_them(self, mode: str) -> None:
        """The names of KIP-1034 are as good as ours, and an exception needs no message."""
        story, records = spoiled(mode)
        for record in records:
            story.letter_of_streams(record)

        assert story.found("dead-letters") == []

    @pytest.mark.parametrize(
        ("changes", "name"),
        [
            ({"key": b"south"}, "phantom"),
            ({"exception": b""}, "lost"),
            ({"headers": BY_STREAMS}, "lost"),
            ({"headers": (*HEADERS, *reversed(BY_STREAMS))}, None),  # the KIP gives no order
            ({"headers": (*HEADERS, *OWN, *BY_STREAMS)}, "phantom"),
        ],
    )
    def test_changed_by_kafka_streams(self, changes: dict[str, Any], name: str | None) -> None:
        """Such a letter is the record too, with its headers in their order."""
        story, (first, second, third) = spoiled()
        story.letter(first)
        story.letter_of_streams(second, **changes)
        story.letter(third)

        assert story.found("dead-letters") == ([(name, "north", second.at)] if name else [])

    def test_a_letter_of_a_letter(self) -> None:
        """The last set counts: a dead letter may be read again, and set aside again."""
        story = Story("ledger", "exactly_once", sets_aside=True)
        story.start()
        record = story.spoiled(headers=(*HEADERS, *BY_STREAMS))
        story.letter_of_streams(record)

        assert story.found("dead-letters") == []

    @pytest.mark.parametrize(
        "headers",
        [
            (),
            BY_STREAMS[1:],
            (*BY_STREAMS, ("seen", b"1")),
            (*BY_STREAMS[:-1], BY_STREAMS[0]),
            (*BY_STREAMS[:-1], ("__streams.errors.offset", b"-1")),
            OWN[1:],
            (*OWN, ("seen", b"1")),
            tuple(reversed(OWN)),
            (*OWN[:3], ("offset", b"0x2")),
            (*OWN[:3], ("offset", None)),
        ],
    )
    def test_from_nowhere(self, headers: tuple[tuple[str, bytes], ...]) -> None:
        """A letter that does not say its position is nobody's, and its record is lost."""
        story, (first, second, third) = spoiled()
        story.letter(first)
        story.letter(third)
        story.letter(second, headers=headers)

        assert sorted(story.found("dead-letters"), key=str) == [
            ("lost", "north", second.at),
            ("phantom", None, None),
        ]

    def test_readable(self) -> None:
        """A record that can be read is no dead letter."""
        story, records = spoiled()
        for record in (*records, story.entry(ada=1)):
            story.letter(record)

        assert story.found("dead-letters") == [("phantom", "north", "app-entries-0@4")]

    def test_aborted(self) -> None:
        """Nothing comes of what was aborted upstream, and be it that it cannot be read."""
        story, records = spoiled()
        for record in (*records, story.spoiled(visible=False), story.aborted(ada=1)):
            story.letter(record)

        assert story.found("dead-letters") == [
            ("uncommitted-visible", "north", f"app-entries-0@{at}") for at in (4, 5)
        ]

    def test_of_an_open_transaction(self) -> None:
        """A letter that no reader of committed data is given is none."""
        story, records = spoiled()
        for record in records:
            story.letter(record, visible=False)

        assert {name for name, *_ in story.found("dead-letters")} == {"lost"}

    @pytest.mark.parametrize(
        ("mode", "committed", "letters", "found"),
        [
            ("exactly_once", (1, 0), [0], []),
            ("exactly_once", (2, 0), [0], []),
            ("exactly_once", (0, 0), [0], ["ahead-of-commit"]),
            ("exactly_once", (3, 0), [0], ["lost"]),
            ("exactly_once", (3, 1), [0, 1, 2], []),
            ("at_least_once", (0, 0), [0, 2], []),
            ("at_least_once", (3, 0), [1, 2], ["lost"]),
        ],
    )
    def test_with_all_down(
        self, mode: str, committed: tuple[int, int], letters: list[int], found: list[str]
    ) -> None:
        """The letters of committed records are there, and under exactly_once no more.

        When an instance runs again, all letters have to come.
        """
        story, records = spoiled(mode)
        for number in letters:
            story.letter(records[number])
        story.kill()
        story.settled(*committed)

        assert [name for name, *_ in story.found("dead-letters")] == found

        story.start()
        assert len(story.found("dead-letters")) == 3 - len(letters)

    def test_atomic_per_shard(self) -> None:
        """Then the letters may be ahead, until a restart, and come no second time."""
        story, records = spoiled(atomic="shard")
        for record in records:
            story.letter(record)
        story.kill()
        story.settled(0, 0)
        assert story.found("dead-letters") == []

        story.letter(records[0])
        assert story.found("dead-letters") == [("duplicated", "north", records[0].at)]

    def test_all_can_be_read(self) -> None:
        """An aborted record proves nothing."""
        story = Story(sets_aside=True)
        story.start()
        story.entry(ada=5)
        story.spoiled(visible=False)

        with pytest.raises(Inconclusive):
            story.found("dead-letters")

    @pytest.mark.parametrize(
        ("mode", "found"),
        [("exactly_once", [("lost", "north", "app-entries-0@0")]), ("at_least_once", [])],
    )
    def test_without_a_group(self, mode: str, found: list[Found]) -> None:
        """Outputs in one transaction with the letters say how far the design had come."""
        story, records = spoiled(mode)
        story.letter(records[1])
        story.kill()
        story.settled(group=False)
        assert story.found("dead-letters") == []

        entry = next(record for record in story.history.of(Record) if record.offset == 1)
        story.row("ada", 5, 1, entry)

        assert story.found("dead-letters") == found


@pytest.mark.parametrize("program", ["relay", "ledger"])
def test_nothing_else_comes_of_it(program: str) -> None:
    """An unreadable record makes no state.

    An output that a design made of it is diagnosed all the same.
    """
    story = Story(program, sets_aside=True)
    story.start()
    flawed = story.spoiled()
    entry = story.entry(ada=5)
    story.spoiled(None, visible=False)
    story.spoiled(key=None)
    made = story.row("ada", 5, 1, entry) if program == "ledger" else story.copy(entry)
    assert story.found("relation") == []

    if program == "ledger":
        made = story.row("ada", 5, 2, entry, applied=(flawed.topic, 0, flawed.offset))
    else:
        made = story.copy(entry, hop=(flawed.topic, 0, flawed.offset))
    assert [(a.name, made.at in (a.got or "")) for a in story.judged("relation")] == [
        ("phantom", True)
    ]
