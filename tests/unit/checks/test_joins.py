"""The checks of `clients`, `tickers` and `holdings` on hand-written histories.

Input in words: `1A` is a row 1 that refers to A (`1` to nobody, or of `clients` just row 1), `.A`
its partner; `-1` and `-.A` delete them, and what stands in brackets was aborted. Output in words:
`0+1` joins these two records by number, `0` is the row alone, `-0` deletes its result.
"""

import json
from typing import Any

import pytest
from histories import Story

from upheld.checks.joins import SOON, races
from upheld.checks.view import view_of
from upheld.history.events import Measured, Record
from upheld.history.marks import Happening
from upheld.programs import CLIENTS, GONE, HOLDINGS, Unreadable
from upheld.verdicts import Inconclusive

BOTH_MODES = pytest.mark.parametrize("mode", ["exactly_once", "at_least_once"])


def told(
    program: str, reads: str, *lives: str, mode: str = "exactly_once", **options: Any
) -> Story:
    """A join that is fed these words; its outputs as words, a new start between the pieces."""
    story = Story(program, mode, **options)
    records: list[Record] = []
    for word in reads.split():
        name, visible = word.strip("()-"), not word.startswith("(")
        table = story.right if name.startswith(".") else story.left
        value: dict[str, Any] = {"value": None} if "-" in word else {}
        records.append(
            table(*(name[1:] if name.startswith(".") else name), visible=visible, **value)
        )
    story.start()
    for again, piece in enumerate(lives):
        if again:
            story.kill()
            story.start()
        for word in piece.split():
            left, _, right = word.removeprefix("-").partition("+")
            if word.startswith("-"):
                story.tombstone(records[int(left)])
            else:
                story.joined(records[int(left)], records[int(right)] if right else None)
    return story


def names(story: Story, check: str, **arguments: Any) -> list[str]:
    """The anomalies alone."""
    return [name for name, _, _ in story.found(check, **arguments)]


class TestRelation:
    """Right pairs, per key in the order of the rows and then of their partners, and as often as the
    mode allows.
    """

    @BOTH_MODES
    @pytest.mark.parametrize(
        ("reads", "outputs"),
        [
            ("1A .A .A", "0 0+1 0+2"),
            ("1A .A 1B .B", "0 0+1 2 2+3"),
            (
                "1A .A .A 1A",
                "0+2 3+1 3+2",
            ),  # two topics have no order, so a newer row may meet an older partner
            ("1A .A .A 1A", "3+2"),
            ("1A .A -.A", "0 0+1 0"),
            ("1A .A -.A", "0"),
            ("1A .A -.A .A", "0 0+1 0 0+3"),
            ("1A .A -.A .A -.A", "0 0 0"),
            ("1A -.A", "0 0"),
            ("1", "0"),
            ("1X .A", "0"),
            ("1A -1", ""),
            ("1A .A -1", "0 0+1 -0"),
            ("1A .A -1 1A", "0+1 -0 3+1"),
            ("1A .A -1 1A -1", "0+1 -0"),
            ("1A .A -1 1A -1", "0+1 -0 -0"),
            ("-1", ""),
            ("-1", "-0"),
            ("1A .A (.A) (1A) (-1) (-.A) (2A)", "0 0+1"),
        ],
    )
    def test_a_left_outer_join(self, mode: str, reads: str, outputs: str) -> None:
        """A row is there with its partner or without, intermediate results may be skipped, and so
        may a row that goes at once.
        """
        assert told("holdings", reads, outputs, mode=mode).found("relation") == []

    @BOTH_MODES
    @pytest.mark.parametrize(
        ("reads", "outputs"),
        [
            ("1 .1", "0+1"),
            ("1 .1 1 .1", "0+1 2+1 2+3"),
            ("1", ""),
            (".1", ""),
            ("1 .2", ""),
            ("1 .1 -.1", "0+1 -0"),
            ("1 .1 -.1", ""),
            ("1 .1 -.1 .1", "0+1 -0 0+3"),
            ("1 .1 -.1 -1", "0+1 -0"),
            ("1 .1 -.1 -1", "0+1 -0 -0"),
            ("1 .1 -1 1", "0+1 -0 3+1"),
            ("1 .1 -.1 1", "0+1 -0"),
        ],
    )
    def test_tables_of_one_key(self, mode: str, reads: str, outputs: str) -> None:
        """There is nothing without a partner, and either side's deletion deletes the result."""
        assert told("clients", reads, outputs, mode=mode).found("relation") == []

    @BOTH_MODES
    @pytest.mark.parametrize(
        ("reads", "outputs"),
        [
            (".A .A .B 1A 2B 2A", "3+1 4+2 5+1"),
            (".A 1A 1X", "1+0 -1"),
            (".A 1A 1X 1 -1", "1+0 -1"),
            (".A 1A 1X 1 -1", "1+0 -1 -1 -1"),
            (".A -.A 1A", ""),
            (".A -.A 1A", "-2"),
            ("1X 1", ""),
            ("1X 1", "-0 -1"),
        ],
    )
    def test_a_broadcast_join(self, mode: str, reads: str, outputs: str) -> None:
        """A row meets its partner as the reference left it; each row without one may leave a
        tombstone.
        """
        assert told("tickers", reads, outputs, mode=mode).found("relation") == []

    @pytest.mark.parametrize(
        ("program", "reads", "outputs", "anomalies"),
        [
            ("holdings", "1A .A 1A 1A", "2+1 0+1 3+1", ["stale-overwrite"]),
            ("holdings", "1A .A .A .A", "0+2 0+1 0+3", ["stale-overwrite"]),
            ("holdings", "1A .A .B 1B", "3+2 0+1", ["stale-overwrite", "lost"]),
            ("holdings", "1A .A", "0+1 0", ["stale-overwrite", "lost"]),
            ("holdings", "1A .A -1", "-0 0+1", ["resurrected", "lost"]),
            ("holdings", "1A .A -1 1A", "0 -0 0+1 3+1", ["resurrected"]),
            ("holdings", "1A .A -1", "0+1 -0 -0", ["duplicated"]),
            ("holdings", "1A .A -1 1A", "0+1 -0 3+1 -0", ["duplicated", "lost"]),
            (
                "holdings",
                "1A .A -1 1A -1",
                "0+1 -0 -0 3+1 -0",
                ["duplicated"],
            ),  # not 3+1 that came back
            ("holdings", "1A .A -1 1A -1 1A -1", "0+1 -0 -0 -0 5+1 -0", ["duplicated"]),
            ("holdings", "1A .A .A", "0+1 0+1 0+2", ["duplicated"]),
            ("holdings", "1A .A", "0 0 0+1", ["duplicated"]),
            ("holdings", "1A .A", "0+1 -0", ["phantom"]),
            ("holdings", "1A .A (-1)", "0+1 -0", ["phantom"]),
            ("holdings", "1A .A .B", "0+2 0+1", ["phantom"]),
            ("holdings", "1A .A 2A", "0+1", ["lost"]),
            ("holdings", "1A .A (1A)", "0+1 2+1", ["uncommitted-visible"]),
            ("holdings", "1A .A (.A)", "0+1 0+2", ["uncommitted-visible"]),
            ("holdings", "1A .A .A", "0 0+1", ["lost"]),
            ("holdings", "1A .A -.A", "0 0+1", ["lost"]),
            ("holdings", "1A .A -1", "0 0+1", ["lost"]),
            ("holdings", "1A .A -1 1A -1", "0 -0 3+1", ["lost"]),
            ("clients", "1 .1", "", ["lost"]),
            ("clients", "1 .1", "0 0+1", ["phantom"]),
            ("clients", "1", "-0", ["phantom"]),
            ("clients", "1 .1 1 .1", "2+1 0+3 2+3", ["stale-overwrite"]),
            ("clients", "1 .1 -.1", "-0 0+1", ["resurrected", "lost"]),
            ("clients", "1 .1 -.1 1", "0+1 -0 -0", ["duplicated"]),
            ("clients", "1 .1 -.1 -1 1", "0+1 -0 -0 -0", ["duplicated"]),
            ("clients", "1 .1 -.1 -1", "0+1", ["lost"]),
            ("tickers", ".A .A 1A", "2+0 2+1", ["phantom"]),
            ("tickers", ".A 1A", "-1 1+0", ["phantom"]),
            ("tickers", ".A -.A 1A", "2+0", ["phantom"]),
            ("tickers", ".A (.A) 1A", "2+1", ["uncommitted-visible", "lost"]),
            ("tickers", ".A 1A 1X", "1+0 -1 -1", ["duplicated"]),
            ("tickers", ".A 1A 1A", "2+0 1+0", ["stale-overwrite", "lost"]),
        ],
    )
    def test_what_is_wrong(
        self, program: str, reads: str, outputs: str, anomalies: list[str]
    ) -> None:
        """Older over newer, back after a deletion, twice, made up, aborted or missing: each has its
        name.
        """
        assert names(told(program, reads, outputs), "relation") == anomalies

    @pytest.mark.parametrize(
        ("reads", "lives"),
        [
            ("1A .A -1", ["0+1 0+1 -0 -0"]),
            ("1A .A -1 1A -1", ["0+1 -0 -0 3+1 -0"]),
            ("1A .A -1", ["0 0+1 -0", "0 0+1 -0"]),
            ("1A .A -1", ["0+1 -0", "-0", "-0"]),
            ("1A .A -.A .A", ["0 0+1 0 0+3", "0 0+1 0 0+3"]),
            ("1A -1 1A -1 1A", ["0 -0 2 -0 4", "-0 2 -0 4"]),
            ("1A .A -1 1A -1", ["0+1 3+1", "0+1 -0"]),
            ("1A .A", ["0+1", "0 0+1"]),
        ],
    )
    def test_at_least_once_repeats(self, reads: str, lives: list[str]) -> None:
        """A result may come twice, and after a new start all from an earlier one on, also where
        several states say the same.
        """
        assert told("holdings", reads, *lives, mode="at_least_once").found("relation") == []

    @pytest.mark.parametrize(
        ("reads", "lives", "anomalies"),
        [
            ("1A .A -1", ["0+1 -0 0+1 -0"], ["resurrected"]),
            ("1A .A .A", ["0+1 0+2 0+1 0+2"], ["stale-overwrite"]),
            ("1A .A .A", ["0+1 0+2 0+1 0+2", "0+2"], ["stale-overwrite"]),
            ("1A .A .A", ["0 0+1 0+2", "0+1 0+2 0 0+2"], ["stale-overwrite"]),
            ("1A .A -1", ["0+1 -0", "0+1"], ["resurrected"]),
            ("1A .A 1A", ["2+1", "0+1"], ["stale-overwrite"]),
            ("1A .A -1", ["0+1"], ["lost"]),
            ("1A .A", ["0+1 -0"], ["phantom"]),
            ("1A .A (.A)", ["0+2 0+1"], ["uncommitted-visible"]),
        ],
    )
    def test_what_at_least_once_does_not_allow(
        self, reads: str, lives: list[str], anomalies: list[str]
    ) -> None:
        """It steps back once behind each new start, invents nothing and ends at the last state."""
        assert names(told("holdings", reads, *lives, mode="at_least_once"), "relation") == anomalies

    def test_an_anomaly_names_its_record(self) -> None:
        """Key and input record are told, of a pair that does not belong together the partner, and
        why in words.
        """
        stale = told("holdings", "1A .A 1A 1A", "2+1 0+1 3+1")
        (foreign,) = told("holdings", "1A .A .B", "0+2 0+1").judged("relation")

        assert stale.found("relation") == [("stale-overwrite", "1", "app-positions-0@0")]
        assert (foreign.key, foreign.source) == ("1", "app-tickers-0@1")
        assert "positions-0@0 does not refer to tickers-0@1" in foreign.text

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            (
                {"left": {"positionId": "1", "client": "c", "ticker": "A", "amount": 7}},
                "positions-0@0 says something else",
            ),
            (
                {"right": {"ticker": "A", "exchange": "LON", "name": "?", "founded": 1}},
                "tickers-0@0 says something else",
            ),
            (
                {"from": {"left": "positions-0@9", "right": "tickers-0@0"}},
                "no record stands at positions-0@9",
            ),
            (
                {"from": {"left": "positions-0@0", "right": "tickers-1@0"}},
                "no record stands at tickers-1@0",
            ),
            ({"from": {"left": "positions-0@0", "right": 7}}, "other fields"),
            (
                {"left": {"positionId": "2", "client": "c", "ticker": "A", "amount": 0}},
                "another key than its left row",
            ),
            ({"left": None}, "no result of the contract"),
            ({"left": ["positionId", "client", "ticker", "amount"]}, "no row of positions"),
            (
                {"left": {"positionId": "1", "client": "c", "ticker": "A", "amount": "0"}},
                "no row of positions",
            ),
            (
                {"left": {"positionId": "1", "client": "c", "ticker": "A", "amount": False}},
                "no row of positions",
            ),
            ({"left": {"positionId": "1", "client": "c", "ticker": "A"}}, "other fields"),
            ({"right": None}, "other fields"),
            ({"right": {}}, "other fields"),
            ({"from": {"left": "positions-0@0", "right": None}}, "other fields"),
            ({"from": {"left": 0, "right": "tickers-0@0"}}, "other fields"),
            ({"from": {"left": "positions-0@0", "right": []}}, "other fields"),
            ({"from": {"left": "positions-0@0"}}, "no result of the contract"),
            (
                {"from": {"left": "positions-0@0", "right": "tickers-0@0", "from": None}},
                "other fields",
            ),
            ({"at": 1}, "other fields"),
        ],
    )
    def test_a_result_that_is_none_of_the_contracts(self, change: dict[str, Any], why: str) -> None:
        """Other fields, other types, other cells or positions where nothing stands: phantom, and it
        is told why.
        """
        story = told("holdings", "1A .A")
        left, right = story.history.of(Record)
        value = json.loads(story.joined(left, right).value or b"") | change
        story.joined(left, right, value=json.dumps(value).encode())
        (anomaly,) = story.judged("relation")

        assert anomaly.name == "phantom"
        assert why in anomaly.text

    def test_keys_apart(self) -> None:
        """A result under another key, or a tombstone for a key that is in no table, is phantom; a
        key has one partition.
        """
        story = told("holdings", "1A .A")
        left, right = story.history.of(Record)
        story.joined(left, right)
        story.joined(left, right, key=b"2")
        story.tombstone(left, key=b"3")
        assert [found[:2] for found in story.found("relation")] == [
            ("phantom", "2"),
            ("phantom", "3"),
        ]

        spread = told("holdings", "1A .A", "0")
        left, right = list(spread.history.of(Record))[:2]
        spread.joined(left, right, partition=1)
        assert names(spread, "relation") == ["reordered"]

    def test_a_foreign_result_does_not_hide_where_the_key_is(self) -> None:
        """What is no state at all is told once, and the order of the others is as it was."""
        story = told("holdings", "1A -1 1A -1", "0 -0 2")
        story.joined(next(story.history.of(Record)), value=b"?")
        story.tombstone(next(story.history.of(Record)))

        assert names(story, "relation") == ["phantom"]


class TestFold:
    """With every instance down, the visible results are the join of what is committed of both
    inputs.
    """

    @pytest.mark.parametrize(
        ("program", "reads", "outputs", "committed", "anomaly"),
        [
            ("holdings", "1A .A", "0+1", (1, 1), None),
            ("holdings", "1A .A", "0", (1, 0), None),
            ("holdings", "1A .A", "", (0, 0), None),
            ("holdings", "1A .A", "", (0, 1), None),
            ("holdings", "1A .A -.A", "0", (1, 2), None),
            ("holdings", "1A .A .A", "0+1", (1, 1), None),
            ("holdings", "1A .A -1", "0+1 -0", (2, 1), None),
            ("holdings", "1A -1", "", (2, 0), None),
            ("clients", "1 .1", "", (1, 0), None),
            ("clients", "1 .1 -.1", "", (1, 2), None),
            ("clients", "1 .1 -.1", "0+1", (1, 1), None),
            ("tickers", ".A 1A 1A", "1+0", (1,), None),
            ("tickers", ".A 1A 1A", "", (0,), None),
            ("tickers", ".A 1A 1X", "1+0 -1", (2,), None),
            ("holdings", "1A .A", "0", (1, 1), "behind-commit"),
            ("holdings", "1A .A", "", (1, 0), "behind-commit"),
            ("holdings", "1A .A -.A", "0+1", (1, 2), "behind-commit"),
            ("holdings", "1A .A -1", "0+1", (2, 1), "behind-commit"),
            ("clients", "1 .1", "", (1, 1), "behind-commit"),
            ("tickers", ".A 1A 1A", "1+0", (2,), "behind-commit"),
            ("holdings", "1A .A .A", "0+2 0+1", (1, 2), "stale-overwrite"),
            ("holdings", "1A .A 1A", "2+1 0+1", (2, 1), "stale-overwrite"),
            ("holdings", "1A .A -.A 1A", "3 0+1", (2, 2), "stale-overwrite"),
            ("holdings", "1A .A -.A", "0 0+1", (1, 2), "behind-commit"),
            ("holdings", "1A .A -1", "-0 0+1", (2, 1), "resurrected"),
            ("tickers", ".A 1A -1", "-1 1+0", (2,), "resurrected"),
        ],
    )
    def test_two_inputs(
        self,
        program: str,
        reads: str,
        outputs: str,
        committed: tuple[int, ...],
        anomaly: str | None,
    ) -> None:
        """A result is due when both of its records are committed, of a broadcast join when its row
        is, in both modes.
        """
        for mode in ("exactly_once", "at_least_once"):
            story = told(program, reads, outputs, mode=mode)
            story.kill()
            story.settled(committed[0], second=committed[1:])
            assert names(story, "fold") == ([anomaly] if anomaly else [])

    @pytest.mark.parametrize(
        ("program", "reads", "outputs", "committed"),
        [
            ("holdings", "1A .A", "0+1", (1, 0)),
            ("holdings", "1A .A", "0+1", (0, 1)),
            ("holdings", "1A .A -1", "0+1 -0", (1, 1)),
            ("clients", "1 .1", "0+1", (1, 0)),
            ("tickers", ".A 1A 1A", "1+0 2+0", (1,)),
        ],
    )
    def test_what_is_visible_and_not_committed(
        self, program: str, reads: str, outputs: str, committed: tuple[int, ...]
    ) -> None:
        """A result of a record above either commit is ahead under exactly_once, unless the design
        is atomic per shard only.
        """
        for options, anomalies in (
            ({"mode": "exactly_once"}, ["ahead-of-commit"]),
            ({"mode": "exactly_once", "atomic": "shard"}, []),
            ({"mode": "at_least_once"}, []),
        ):
            story = told(program, reads, outputs, **options)
            story.kill()
            story.settled(committed[0], second=committed[1:])
            assert names(story, "fold") == anomalies

    @pytest.mark.parametrize(
        ("program", "reads", "outputs", "committed", "exactly_once"),
        [
            (
                "holdings",
                "1A .A -1 1A -1",
                "0+1 -0",
                (3, 1),
                "behind-commit",
            ),  # one tombstone for both, commit between
            ("holdings", "1A .A -.A .A -.A", "0+1 0", (1, 3), "behind-commit"),
            ("holdings", "1A -1", "", (1, 0), "behind-commit"),
            (
                "clients",
                "1 .1 1",
                "0+1",
                (2, 0),
                "behind-commit",
            ),  # shown before a crash, read in another order since
        ],
    )
    def test_a_later_state_that_says_the_same(
        self, program: str, reads: str, outputs: str, committed: tuple[int, ...], exactly_once: str
    ) -> None:
        """Under at_least_once what is shown may be a later state, also where an earlier one says
        the same.
        """
        for mode, anomalies in (("exactly_once", [exactly_once]), ("at_least_once", [])):
            story = told(program, reads, outputs, mode=mode)
            story.kill()
            story.settled(committed[0], second=committed[1:])
            assert names(story, "fold") == anomalies


class TestPromptly:
    """The join of the tables as a pause leaves them is visible in time."""

    @BOTH_MODES
    @pytest.mark.parametrize(
        ("program", "reads", "outputs", "anomalies"),
        [
            ("holdings", "1A .A", "0+1", []),
            ("holdings", "1A .A -1", "0+1 -0", []),
            ("holdings", "1A .A -1", "", []),
            ("holdings", "1A .A -.A", "0", []),
            ("clients", "1 2", "", []),
            ("holdings", "1A .A", "0", ["late"]),
            ("holdings", "1A .A", "", ["late"]),
            ("holdings", "1A .A -1", "0+1", ["late"]),
            ("holdings", "1A .A -.A", "0 0+1", ["late"]),
            (
                "holdings",
                "1A -1 1A -1",
                "0 -0 2",
                ["late"],
            ),  # the tombstone that is there is the earlier one's
            ("clients", "1 .1 -.1", "0+1", ["late"]),
            ("tickers", ".A 1A 1X", "1+0", ["late"]),
            ("holdings", "1A .A", "-0 0+1", ["phantom"]),
        ],
    )
    def test_the_last_state(
        self, mode: str, program: str, reads: str, outputs: str, anomalies: list[str]
    ) -> None:
        """What the pause left last is visible, a deletion by silence too where nothing was
        visible.
        """
        story = told(program, reads, outputs, mode=mode)
        story.rests()

        assert names(story, "promptly") == anomalies

    def test_a_repeat_is_not_late(self) -> None:
        """Who stepped back after a new start had shown it."""
        for lives in (["0+1 -0", "0+1"], ["0+1 3+1", "0+1 -0"]):
            story = told("holdings", "1A .A -1 1A -1", *lives, mode="at_least_once")
            story.rests()
            assert names(story, "promptly") == []


class TestResult:
    """The last visible rows are a table's."""

    TABLE = (
        ["positionId", "ticker", "amount", "exchange", "name"],
        ["1", "A", "0", "LON", "n1"],
        ["2", "X", "2", "", ""],
        ["3", "", "3", "", ""],
    )

    def shown(self, *outputs: str) -> Story:
        """Three rows, one with a partner, one with an unknown one and one with none, and a fourth
        that went.
        """
        return told("holdings", "1A .A 2X 3 4A -4", "0+1 2 3 4+1 -4", *outputs)

    def test_a_table(self) -> None:
        """Numbers and text are cells as they are, null is one without text, a deleted row is none,
        order means nothing.
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
        """A row that is missing is lost, one that is too many or has another cell is phantom."""
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
        """What was shown on the way is the relation's business, and a row that went is lost."""
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
    """What a design holds falls back to what it held before a crowd came and went."""

    @staticmethod
    def held(*sizes: int) -> Story:
        """A design that says this, one after the other."""
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
        """Who says the same with a crowd in its tables says nothing."""
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
        """Everything that is visible beside a refusal is phantom, right or not, and the refusal is
        told.
        """
        story = told("clients", "1 .1 -1", "0+1 -0")
        story.failed("3 and 4 partitions")
        right, _ = story.judged("refused-or-right")

        assert [found[:2] for found in story.found("refused-or-right")] == [("phantom", "1")] * 2
        assert right.text == "it refused (3 and 4 partitions), and app-joined-0@0 is visible"

    def test_written_by_an_earlier_start(self) -> None:
        """What was right before the start that was refused stays right."""
        story = told("clients", "1 .1", "0+1")
        story.stop()
        story.start()
        story.failed("the group is ahead of this checkpoint")

        assert story.found("refused-or-right") == []

    def test_somebody_elses_refusal(self) -> None:
        """Another application's refusal excuses nothing."""
        story = told("clients", "1 .1", "")
        story.beside("at_least_once").failed("no")

        assert names(story, "refused-or-right") == ["lost"]


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
        """A row and its partner, joined, and behind them a record that the contract does not
        allow.
        """
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

        assert view_of(story.history, "app").is_flawed(flawed)
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
        """Who names no record, or another one, was not loud."""
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

        assert view_of(story.history, "app").is_flawed(flawed)
        assert names(story, "named") == ["phantom"]

    def test_more_fields_are_no_flaw(self) -> None:
        """A row may have fields that the contract does not name; the result does not have them."""
        story = Story("holdings")
        row = story.left(
            "1",
            value=b'{"positionId": "1", "client": "c", "ticker": null, "amount": 1, "note": "n"}',
        )
        assert not view_of(story.history, "app").is_flawed(row)

        story.joined(row)
        assert names(story, "relation") == ["phantom", "lost"]


@pytest.mark.parametrize(
    ("program", "reads", "outputs", "settled"),
    [
        ("holdings", "1A .A", "0 0+1", True),
        ("holdings", "1A .A", "0", False),
        ("holdings", "1A .A", "0+1 0", False),
        ("holdings", "1A .A 2", "0+1", False),
        ("holdings", "1A -1 -2", "", True),
        ("holdings", "1A -1", "0", False),
        ("holdings", "1A -1", "0 -0", True),
        ("holdings", "1A .A -.A", "0", True),
        ("clients", "1", "", True),
        ("clients", "1 .1", "", False),
        ("clients", "1 .1 -.1", "0+1", False),
    ],
)
def test_settled(program: str, reads: str, outputs: str, settled: bool) -> None:
    """It is settled when every key shows its last state, or nothing where there is nothing to
    show.
    """
    assert view_of(told(program, reads, outputs).history, "app").is_settled is settled


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
    """A deletion right after its row, and a move between partners of different partitions: A and C
    lie in 0, B in 1.
    """
    story = told("holdings", "")
    for word in reads.split():
        name, change = (
            word.strip("()-"),
            {"visible": not word.startswith("(")} | ({"value": None} if "-" in word else {}),
        )
        if name.startswith("."):
            story.right(name[1:], partition=int(name == ".B"), **change)
        else:
            story.left(*name, **change)
    count = races(story.history, "app")

    assert count[Happening.ROWS_GONE_SOON] == gone
    assert count[Happening.ROWS_MOVED] == moved


@pytest.mark.parametrize(("between", "possible"), [(SOON - 1, 1), (SOON, 0)])
def test_a_race_is_soon(between: int, possible: int) -> None:
    """What lies far behind in the partition races with nothing."""
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


def test_roles() -> None:
    """Roles, topics and commits of a join: both inputs, or of a broadcast join the first one
    alone.
    """
    story = told("tickers", "")

    assert HOLDINGS.inputs == HOLDINGS.commits == ("positions", "tickers")
    assert (story.program.inputs, story.program.commits) == (
        ("positions", "tickers"),
        ("positions",),
    )
    assert CLIENTS.topics == {
        "client-positions": "input",
        "client-details": "input",
        "joined": "output",
    }
    assert set(HOLDINGS.parameters) - set(CLIENTS.parameters) == {"delete_retention_ms"}


def test_what_an_output_says() -> None:
    """A pair is its positions and rows, a list in it compares, and a tombstone is gone."""
    story = Story("clients")
    left, right = story.left("1", 1, 3), story.right("1")

    assert CLIENTS.value_of(story.joined(left, right)) == (
        "client-positions-0@0",
        "client-details-0@0",
        ("1", (1, 3)),
        ("1", "n1", "s", "e"),
    )
    assert CLIENTS.value_of(story.tombstone(left)) == GONE
    with pytest.raises(Unreadable, match="no result of the contract"):
        CLIENTS.value_of(left)
