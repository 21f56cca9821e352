"""The checks of joins alone, on hand-written histories."""

import json
from typing import Any

import pytest
from histories import Story
from joins_in_words import names, told

from upheld.checks.joins import SOON, races
from upheld.checks.view import view_of
from upheld.history.events import Mark, Measured, Record
from upheld.history.marks import Happening
from upheld.verdicts import Inconclusive


class TestResult:
    """The last visible rows are a table's."""

    TABLE = (
        ["positionId", "ticker", "amount", "exchange", "name"],
        ["1", "A", "0", "LON", "n1"],
        ["2", "X", "2", "", ""],
        ["3", "", "3", "", ""],
    )

    def shown(self, *outputs: str) -> Story:
        """Tell three rows and a fourth that went.

        The three have a partner, an unknown partner and none.
        """
        return told("holdings", "1A .A 2X 3 4A -4", "0+1 2 3 4+1 -4", *outputs)

    def test_a_table(self) -> None:
        """Numbers and text are cells as they are, and null is a cell without text.

        A deleted row is none, and the order means nothing.
        """
        head, *rows = self.TABLE

        assert self.shown().found("result", table=[head, *rows]) == []
        assert self.shown().found("result", table=[head, *reversed(rows)]) == []
        assert self.shown().found("result", table=[["positionId"], ["1"], ["2"], ["3"]]) == []

    def test_a_list(self) -> None:
        """A list of numbers is a cell with commas, and an empty one has no text."""
        story = Story("clients")
        rows = story.left("1", 1, 3), story.left("2", 4), story.left("3")
        details = [story.right(key) for key in "123"]
        for row, other in zip(rows, details, strict=True):
            story.joined(row, other)
        table = [
            ["client", "positions", "name"],
            ["1", "1, 3", "n3"],
            ["2", "4", "n4"],
            ["3", "", "n5"],
        ]

        assert story.found("result", table=table) == []

    def test_another_table(self) -> None:
        """A missing row is lost; a row too many or with another cell is phantom."""
        head, *rows = self.TABLE

        assert self.shown().found("result", table=[head, *rows, ["5", "A", "9", "", ""]]) == [
            ("lost", "5", None)
        ]
        assert self.shown().found("result", table=[head, *rows[1:]]) == [("phantom", "1", None)]
        assert told("holdings", "1A .A 2X 3", "0+1 2 3", "0").found(
            "result", table=[head, *rows]
        ) == [("phantom", "1", None)]
        assert names(self.shown("2+1"), "result", table=[head, *rows]) == ["phantom"]

        (changed,) = self.shown().judged("result", table=[head, [*rows[0][:-1], "n2"], *rows[1:]])
        assert (changed.name, changed.expected, changed.got) == (
            "phantom",
            "1 | A | 0 | LON | n2",
            "1 | A | 0 | LON | n1",
        )
        assert changed.text == "1 is 1 | A | 0 | LON | n1 and not 1 | A | 0 | LON | n2"

    def test_the_last_row_counts(self) -> None:
        """Only the last row counts, and a row that went is lost.

        Earlier rows are the relation's business.
        """
        table = [["positionId", "exchange"], ["1", "LON"]]

        assert told("holdings", "1A .A", "0 0+1").found("result", table=table) == []
        assert told("holdings", "1A .A -1", "0+1 -0").found("result", table=table) == [
            ("lost", "1", None)
        ]

    @pytest.mark.parametrize("value", [b"?", b"[]", b"{}", b'{"left": 1, "right": 2, "from": {}}'])
    def test_a_row_that_cannot_be_read(self, value: bytes) -> None:
        """A result of any bytes is phantom, not a traceback."""
        story = told("holdings", "1A .A", "0+1")
        story.joined(next(story.history.of(Record)), value=value)

        assert story.found("result", table=[["positionId"], ["1"]]) == [("phantom", "1", None)]


class TestForgotten:
    """The state of a design falls back to its size before a crowd came and went."""

    @staticmethod
    def held(*sizes: int) -> Story:
        """Tell a design that says these sizes, one after the other."""
        story = told("holdings", "1A", "0")
        for size in sizes:
            story.history.add(Measured(at_ms=0, application="app", size=size, unit="rows"))
        return story

    @pytest.mark.parametrize(
        ("last", "anomalies"), [(90, []), (200, []), (201, ["unbounded"]), (1100, ["unbounded"])]
    )
    def test_the_bound(self, last: int, anomalies: list[str]) -> None:
        """At the end no more than so many times what it was at first."""
        assert names(self.held(100, 1100, last), "forgotten", times=2) == anomalies

    def test_a_measure_that_never_moves(self) -> None:
        """A design that says the same with a crowd in its tables says nothing."""
        with pytest.raises(Inconclusive, match="hardly more"):
            self.held(100, 120, 100).found("forgotten", times=2)


class TestRefusedOrRight:
    """Inputs that cannot be joined are left alone, or joined right."""

    def test_not_refused(self) -> None:
        """Without a refusal the relation holds."""
        assert told("clients", "1 .1", "0+1").found("refused-or-right") == []
        assert names(told("clients", "1 .1", ""), "refused-or-right") == ["lost"]

    def test_refused(self) -> None:
        """A refusal owes nothing."""
        story = told("clients", "1 .1", "")
        story.failed("3 and 4 partitions")

        assert story.found("refused-or-right") == []

    def test_refused_and_written(self) -> None:
        """Every output beside a refusal is phantom, right or not.

        The refusal is told.
        """
        story = told("clients", "1 .1 -1", "0+1 -0")
        story.failed("3 and 4 partitions")
        right, _ = story.judged("refused-or-right")

        assert [found[:2] for found in story.found("refused-or-right")] == [("phantom", "1")] * 2
        assert right.text == "it refused (3 and 4 partitions), and app-joined-0@0 is visible"

    def test_written_by_an_earlier_start(self) -> None:
        """An output that was right before the refused start stays right."""
        story = told("clients", "1 .1", "0+1")
        story.stop()
        story.start()
        story.failed("the group is ahead of this checkpoint")

        assert story.found("refused-or-right") == []

    def test_ready_at_the_next_start(self) -> None:
        """A start that failed by accident excuses nothing, and spoils nothing."""
        right = told("clients", "1 .1", "0+1")
        right.failed("a leader that does not know it yet")
        right.start()
        wrong = told("clients", "1 .1", "")
        wrong.failed("a leader that does not know it yet")
        wrong.start()

        assert right.found("refused-or-right") == []
        assert names(wrong, "refused-or-right") == ["lost"]

    def test_somebody_elses_refusal(self) -> None:
        """Another application's refusal excuses nothing."""
        story = told("clients", "1 .1", "")
        story.beside("at_least_once").failed("no")

        assert names(story, "refused-or-right") == ["lost"]


class TestWholeOrRefused:
    """A design goes on right to the end, or refuses and leaves what it had committed."""

    def stopped(self, *, refused: bool, outputs: str) -> Story:
        """Tell two pairs of rows of which the first is committed, and a loud stop."""
        story = told("clients", "1 .1 2 .2", outputs)
        story.failed("conflict: more partitions")
        if refused:
            said = {"fault": Happening.START_REFUSED.text, "evidence": {"said": "no"}}
            story.history.add(Mark(at_ms=1, **said))
        story.settled(1, second=[1])
        return story

    def test_goes_on(self) -> None:
        """A loud stop alone excuses nothing: it was started again."""
        assert names(self.stopped(refused=False, outputs="0+1"), "whole-or-refused") == ["lost"]
        assert names(self.stopped(refused=False, outputs="0+1 2+3"), "whole-or-refused") == []

    def test_refuses(self) -> None:
        """After a refusal the outputs are those of the committed input."""
        assert names(self.stopped(refused=True, outputs="0+1"), "whole-or-refused") == []
        assert names(self.stopped(refused=True, outputs=""), "whole-or-refused") != []


class TestNamed:
    """A loud stop names the record that cannot be read, and nothing comes of it."""

    FLAWS: tuple[tuple[str, dict[str, Any]], ...] = (
        ("left", {"key": None}),
        ("left", {"key": None, "value": None}),
        ("right", {"key": None}),
        ("left", {"key": b"2"}),
        ("left", {"value": b"{"}),
        ("left", {"value": b"\xff"}),
        ("left", {"value": b"[1]"}),
        ("left", {"value": b'{"positionId": "1", "client": "c", "ticker": "A"}'}),
        ("left", {"value": b'{"positionId": "1", "client": "c", "ticker": "A", "amount": "1"}'}),
        ("left", {"value": b'{"positionId": "1", "client": "c", "ticker": "A", "amount": 1.0}'}),
        ("left", {"value": b'{"positionId": "1", "client": null, "ticker": "A", "amount": 1}'}),
        ("left", {"value": b'{"positionId": "1", "client": "c", "ticker": 1, "amount": 1}'}),
        ("right", {"value": b'{"ticker": "A", "exchange": "LON", "name": "n"}'}),
        ("right", {"value": b'{"ticker": null, "exchange": "LON", "name": "n", "founded": 1900}'}),
    )

    def flawed(self, side: str = "left", **change: Any) -> tuple[Story, Record]:
        """Tell a row and its partner, joined, and a record against the contract behind."""
        story = told("holdings", "1A .A", "0+1")
        flawed = story.left("1", "A", **change) if side == "left" else story.right("A", **change)
        return story, flawed

    @pytest.mark.parametrize(("side", "change"), FLAWS, ids=repr)
    def test_every_flaw(self, side: str, change: dict[str, Any]) -> None:
        """The record is known by its flaw, and the model of all the others stands."""
        story, flawed = self.flawed(side, **change)
        story.failed(f"poison: {flawed.at} cannot be read")
        story.kill()
        story.settled(1, second=[1])

        assert view_of(story.history, "app").is_unreadable(flawed)
        assert story.found("named") == []
        assert story.found("fold") == []

    @pytest.mark.parametrize(
        "said",
        [
            "",
            "something is wrong",
            "app-positions-0@0 cannot be read",
            "app-positions-0@12 cannot be read",
        ],
    )
    def test_another_record_is_named(self, said: str) -> None:
        """A design that names no record, or another one, was not loud."""
        story, _ = self.flawed(value=b"{")
        story.failed(said)
        (anomaly,) = story.judged("named")

        assert anomaly.name == "stuck"
        assert anomaly.text.endswith(said)

    def test_what_was_aborted_is_not_to_blame(self) -> None:
        """A flawed record that was aborted stops nobody."""
        story, flawed = self.flawed(value=b"{", visible=False)
        story.failed(f"{flawed.at} cannot be read")

        assert names(story, "named") == ["stuck"]

    @pytest.mark.parametrize(("side", "change"), FLAWS[:3] + FLAWS[4:6], ids=repr)
    def test_something_comes_of_it(self, side: str, change: dict[str, Any]) -> None:
        """A result that is made up from what cannot be read is phantom."""
        story, flawed = self.flawed(side, **change)
        left, right = list(story.history.of(Record))[:2]
        pair = {"left": left, "right": right} | {side: flawed}
        places = {name: record.at.removeprefix("app-") for name, record in pair.items()}
        rows = {"left": json.loads(left.value or b""), "right": json.loads(right.value or b"")}
        story.joined(left, right, value=json.dumps(rows | {"from": places}).encode())
        story.failed(f"{flawed.at} cannot be read")
        (anomaly,) = story.judged("named")

        assert (anomaly.name, anomaly.key, anomaly.source) == ("phantom", "1", flawed.at)

    @pytest.mark.parametrize("positions", ["1", None, {}, [1, "3"], [1.5], [True], [[1]]])
    def test_a_list_that_is_none_of_numbers(self, positions: Any) -> None:
        """Positions are a list of integers, in a table and in a result."""
        story = Story("clients")
        flawed = story.left("1", value=json.dumps({"client": "1", "positions": positions}).encode())
        story.joined(flawed, story.right("1"))
        story.failed(f"{flawed.at} cannot be read")

        assert view_of(story.history, "app").is_unreadable(flawed)
        assert names(story, "named") == ["phantom"]

    def test_more_fields_are_no_flaw(self) -> None:
        """A row may have fields that the contract does not name.

        The result does not have them.
        """
        story = Story("holdings")
        row = story.left(
            "1",
            value=b'{"positionId": "1", "client": "c", "ticker": null, "amount": 1, "note": "n"}',
        )
        assert not view_of(story.history, "app").is_unreadable(row)

        story.joined(row)
        assert names(story, "relation") == ["phantom", "lost"]


@pytest.mark.parametrize(
    ("reads", "gone", "moved"),
    [
        ("1A -1", 1, 0),
        ("-1", 0, 0),
        ("1A -1 -1", 1, 0),
        ("1A -1 1A -1 2A -2", 3, 0),
        ("1A (-1)", 0, 0),
        (".A .B 1A 1B", 0, 1),
        (".A .B 1A 1B 1A", 0, 2),
        (".A .C 1A 1C", 0, 0),
        (".A .B 1A 1A", 0, 0),
        (".A .B 1A -1 1B", 1, 0),
        (".A .B (1A) 1B", 0, 0),
        ("(.A) (.B) 1A 1B", 0, 0),
        (".A 1A 1X 1 1X", 0, 1),
        ("1A -1 .A -.A", 1, 0),
    ],
)
def test_races(reads: str, gone: int, moved: int) -> None:
    """A race is a deletion right after its row, or a move between partitions.

    The partners A and C lie in partition 0, and B in 1.
    """
    story = told("holdings", "")
    for word in reads.split():
        name = word.strip("()-")
        change = {"visible": not word.startswith("(")} | ({"value": None} if "-" in word else {})
        if name.startswith("."):
            story.right(name[1:], partition=int(name == ".B"), **change)
        else:
            story.left(*name, **change)
    count = races(story.history, "app")

    assert count[Happening.ROWS_GONE_SOON] == gone
    assert count[Happening.ROWS_MOVED] == moved


@pytest.mark.parametrize(("between", "possible"), [(SOON - 1, 1), (SOON, 0)])
def test_a_race_is_soon(between: int, possible: int) -> None:
    """A change far behind in the partition races with nothing."""
    story = Story("holdings")
    story.right("A")
    story.right("B", partition=1)
    for key, then in (("1", {"value": None}), ("2", {})):
        story.left(key, "A")
        story.gap(between)
        story.left(key, "B", **then)
    count = races(story.history, "app")

    assert count[Happening.ROWS_GONE_SOON] == possible
    assert count[Happening.ROWS_MOVED] == possible
