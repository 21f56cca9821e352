"""An output says where it came from, on hand-written histories."""

from typing import Any

import pytest
from histories import Story
from stories import BOTH_MODES, BOTH_PROGRAMS

from upheld.generators.envelope_pb2 import Envelope, Hop


class TestPreserved:
    """Every output carries its input's id, timestamp, headers and chain."""

    HEADERS = (("trace", b"1"), ("teller", b"x"), ("teller", b"x"), ("teller", b""), ("none", None))

    def relay_with(self, **changes: Any) -> Story:
        """Tell a relay that copies one record with headers, a name twice among them."""
        story = Story("relay")
        story.copy(story.entry(ada=1, headers=self.HEADERS, via=[("up", 0, 3)]), **changes)
        return story

    @BOTH_MODES
    def test_a_ledger_keeps_them(self, mode: str) -> None:
        """Id, chain and timestamp of the last entry applied are in every row."""
        story = Story("ledger", mode)
        first = story.entry(ada=1, via=[("up", 0, 3)])
        second = story.entry(ada=1, via=[("up", 0, 4)])
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
        """A row that is no state has no lineage to compare, and is not passed over."""
        story = Story()
        entry = story.entry(("ada", 1), ("ada", 2))
        story.row("ada", 1, 1, entry)

        assert story.found("preserved") == [("torn", "ada", "app-entries-0@0")]
