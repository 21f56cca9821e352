"""The relation of joins, their fold and their time, on hand-written histories."""

import json
from typing import Any

import pytest
from joins_in_words import names, told
from stories import BOTH_MODES

from upheld.history.events import Record


class TestRelation:
    """Pairs are right, in order, and as often as the mode allows.

    The order of a key is that of its rows and then of their partners.
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
        """A row is there with its partner or without.

        Intermediate results may be skipped, and so may a row that goes at once.
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
        """A row without a partner gives nothing, and either deletion deletes the result."""
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
        """A row meets its partner as the reference left it.

        Each row without a partner may leave a tombstone.
        """
        assert told("tickers", reads, outputs, mode=mode).found("relation") == []

    @BOTH_MODES
    @pytest.mark.parametrize(
        ("program", "reads", "outputs"),
        [
            ("holdings", "1A .A .A", "0+1 0+1 0+2"),
            ("holdings", "1A .A", "0 0 0+1 0+1"),
            ("holdings", "1A .A -.A", "0+1 0 0 0"),
            ("holdings", "1A .A -.A", "0 0 0+1 0+1 0 0"),
            ("holdings", "1A .A -.A .A -.A", "0 0 0+1 0+1 0 0+3 0+3 0"),
            ("clients", "1 .1", "0+1 0+1 0+1"),
            ("tickers", ".A 1A", "1+0 1+0"),
        ],
    )
    def test_an_equal_result_comes_again(
        self, mode: str, program: str, reads: str, outputs: str
    ) -> None:
        """No contract of a join says that an update emits once."""
        assert told(program, reads, outputs, mode=mode).found("relation") == []

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
            ("holdings", "1A .A .A", "0+1 0+2 0+1 0+2", ["stale-overwrite"]),
            ("holdings", "1A .A", "0 0+1 0", ["stale-overwrite", "lost"]),
            ("holdings", "1A .A -1", "0+1 -0 0+1 -0", ["resurrected"]),
            ("clients", "1 .1 -.1", "0+1 0+1 -0 -0", ["duplicated"]),
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
        """Each wrong result has the name of its anomaly.

        It is older than a newer one, back after a deletion, a tombstone too many, made up, aborted
        or missing.
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
        """A result may come twice, and after a new start all from an earlier one on.

        That holds also where several states say the same.
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
        """At_least_once allows one step back behind each new start.

        It invents nothing and ends at the last state.
        """
        assert names(told("holdings", reads, *lives, mode="at_least_once"), "relation") == anomalies

    def test_an_anomaly_names_its_record(self) -> None:
        """An anomaly names key, input record and reason.

        If a pair does not belong together, it names the partner.
        """
        stale = told("holdings", "1A .A 1A 1A", "2+1 0+1 3+1")
        (foreign,) = told("holdings", "1A .A .B", "0+2 0+1").judged("relation")

        assert stale.found("relation") == [("stale-overwrite", "1", "app-positions-0@0")]
        assert (foreign.key, foreign.source) == ("1", "app-tickers-0@1")
        assert "positions-0@0 does not refer to tickers-0@1" in foreign.text

    def test_an_anomaly_says_that_a_reference_was_not_whole(self) -> None:
        """A broadcast join that met an older row of its partner read too little of it."""
        foreign, *_ = told("tickers", "1A .A .A", "0+1").judged("relation")

        assert "positions-0@0 met tickers-0@0, and the reference says something later" in (
            foreign.text
        )

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
        """A result against the contract is phantom, and the reason is told.

        It has other fields, types or cells, or positions where nothing stands.
        """
        story = told("holdings", "1A .A")
        left, right = story.history.of(Record)
        value = json.loads(story.joined(left, right).value or b"") | change
        story.joined(left, right, value=json.dumps(value).encode())
        (anomaly,) = story.judged("relation")

        assert anomaly.name == "phantom"
        assert why in anomaly.text

    def test_keys_apart(self) -> None:
        """A result under another key is phantom, and so is an unknown key's tombstone.

        A key has one partition.
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
        """A result that is no state at all is told once.

        The order of the others is as it was.
        """
        story = told("holdings", "1A -1 1A -1", "0 -0 2")
        story.joined(next(story.history.of(Record)), value=b"?")
        story.tombstone(next(story.history.of(Record)))

        assert names(story, "relation") == ["phantom"]


class TestFold:
    """The visible results are the join of the committed part of both inputs.

    Every instance is down then.
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
        """A result is due when both of its records are committed.

        A result of a broadcast join is due when its row is. Both hold in both modes.
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
        """Under exactly_once a result above either commit is ahead of it.

        It may be so if the design is atomic per shard only.
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
        """Under at_least_once the visible result may be of a later state.

        It may also be if an earlier state says the same.
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
        """The last state before the pause is visible.

        A deletion is visible by silence if nothing had been visible.
        """
        story = told(program, reads, outputs, mode=mode)
        story.rests()

        assert names(story, "promptly") == anomalies

    def test_a_repeat_is_not_late(self) -> None:
        """A design that stepped back after a new start had shown the state before."""
        for lives in (["0+1 -0", "0+1"], ["0+1 3+1", "0+1 -0"]):
            story = told("holdings", "1A .A -1 1A -1", *lives, mode="at_least_once")
            story.rests()
            assert names(story, "promptly") == []
