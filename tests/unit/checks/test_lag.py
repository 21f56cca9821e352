"""The lag of a design, on hand-written histories of one partition.

It is known by the design's own word and by its commits.
"""

import pytest
from histories import Story

from upheld.checks.view import view_of
from upheld.history.events import Committed, Instance, Lag, Mark, Notice
from upheld.history.marks import Happening
from upheld.verdicts import Inconclusive, NotOffered


def asked(*answers: tuple[int, int, int, int]) -> Story:
    """Tell five events, one a second from 0 on, and the lag that the design says.

    Each answer is a time, the lag, the committed offset and the end at that time.
    """
    story = Story("batcher", threshold=3, interval_ms=1000)
    story.start()
    for number in range(5):
        story.visits("ada", "abcde"[number], seen_ms=1000 * number)
    place = f"{story.reads}-0"
    for at_ms, says, committed, end in answers:
        at = {"committed": {place: committed}, "high_watermark": {place: end}}
        story.history.add(Lag(at_ms=at_ms, application="app", name="a", offsets=says, **at))
    return story


BEHIND = (2000, 3, 0, 3)
DONE = (9000, 0, 5, 5)
AT_REST = (12000, 0, 5, 5)


class TestLag:
    """A lag lies between the records that waited and those not committed.

    The first had waited for a second, the others were not committed a second before.
    """

    @pytest.mark.parametrize(
        ("answer", "is_right"),
        [
            ((4500, 5, 0, 5), True),
            ((4500, 4, 0, 5), True),  # the last event is half a second old
            ((4500, 3, 0, 5), False),
            ((4500, 6, 0, 5), False),  # so far the input does not go
            ((4500, 6, 0, 6), True),  # a marker may count
            ((4500, 0, 5, 5), True),
            ((4500, 5, 5, 5), True),  # nothing was committed when it was asked a second before
            ((4500, 0, 3, 5), False),  # read, perhaps, and not committed
            ((9999, 1, 5, 5), True),
            ((10000, 1, 5, 5), False),  # all was committed a second before
        ],
    )
    def test_bounds(self, answer: tuple[int, int, int, int], *, is_right: bool) -> None:
        """An answer may be a second old."""
        story = asked(*sorted([BEHIND, answer, DONE, AT_REST]))

        assert [name for name, _, _ in story.found("lag")] == ([] if is_right else ["misstated"])

    @pytest.mark.parametrize("answers", [[DONE, AT_REST], [BEHIND], [BEHIND, DONE]])
    def test_says_nothing(self, answers: list[tuple[int, int, int, int]]) -> None:
        """Where it was never behind, or always, there is no lie to be caught in."""
        with pytest.raises(Inconclusive):
            asked(*answers).found("lag")

    def test_is_not_asked(self) -> None:
        """A design that cannot tell is unsupported."""
        with pytest.raises(NotOffered, match="capability lag"):
            asked().found("lag")

    def test_offsets_that_are_information(self) -> None:
        """Kafka cannot bear out what the design says."""
        story = asked(BEHIND, DONE)
        story.declare(progress="none")

        with pytest.raises(NotOffered, match="its offsets are information"):
            story.found("lag")


def ended(*visible: bool, committed: int, end: int) -> Story:
    """Tell a start, entries that are visible or aborted, and the last commit."""
    story = Story("ledger")
    story.start()
    for each in visible:
        story.entry(ada=1, visible=each)
    place = f"{story.reads}-0"
    look = {"offsets": {place: committed}, "high_watermark": {place: end}}
    story.history.add(Committed(at_ms=9, application="app", stable_ms=0, down=False, **look))
    return story


class TestCaughtUp:
    """The end of the log is what counts, not the last record."""

    @pytest.mark.parametrize(
        ("visible", "committed", "is_right"),
        [
            ((True, False), 3, True),  # a record, an aborted one, its marker
            ((True, False), 2, False),
            ((True, False), 1, False),  # the offset after the last record
            ((True, True), 2, False),
            ((), 3, True),  # nothing but what was aborted
            ((), 0, False),
        ],
    )
    def test_bounds(self, visible: tuple[bool, ...], committed: int, *, is_right: bool) -> None:
        """A design that stays before a marker stays behind."""
        story = ended(*visible, committed=committed, end=3)

        assert [name for name, _, _ in story.found("caught-up")] == ([] if is_right else ["stuck"])

    @pytest.mark.parametrize(("committed", "is_said"), [(0, False), (1, True), (2, True)])
    def test_says_what_lies_between(self, committed: int, *, is_said: bool) -> None:
        """Behind the last record there are no more of them."""
        (anomaly,) = ended(True, False, committed=committed, end=3).judged("caught-up")

        assert ("what lies between are markers" in anomaly.text) == is_said

    def test_says_nothing(self) -> None:
        """Where the log ends in a record, the offset after it is its end."""
        with pytest.raises(Inconclusive, match="nothing to pass"):
            ended(True, True, committed=2, end=2).found("caught-up")


class TestGapNamed:
    """A design that finds a gap in its input stops, and says where."""

    @pytest.mark.parametrize(
        ("said", "found"),
        [
            ("offset-lost: app-entries-1 has nothing at 3", []),
            ("Fetch position 3 is out of range for partition app-entries-1", []),
            ("app-entries [1] has nothing at 3", []),
            ("partition 1 of app-entries has nothing at 3", []),
            ("offset-lost: app-entries-12 has nothing at 3", ["stuck"]),  # another partition
            ("offset-lost: some data may have been lost", ["stuck"]),
            (None, ["lost"]),
        ],
    )
    def test_what_is_said(self, said: str | None, found: list[str]) -> None:
        """Going on without a word is a loss, stopping without a place is of no help."""
        story = Story("ledger")
        story.start()
        story.history.add(
            Mark(
                at_ms=1,
                fault=Happening.INPUT_TRUNCATED.text,
                evidence={"gaps": {"app-entries-1": [3, 5]}},
            )
        )
        if said:
            story.history.add(
                Instance(at_ms=2, application="app", name="a", event="failed", detail=said)
            )

        assert [name for name, _, _ in story.found("gap-named")] == found


class TestGapNamedInNotices:
    """A design may go on after a gap, as it was told to at the start, if it says so."""

    @staticmethod
    def after_a_gap(*resets: tuple[int, int]) -> Story:
        """Tell five entries, of which the third is deleted unread, and the notices.

        The rows are those of an instance that read the others.
        """
        story = Story("ledger", "exactly_once")
        story.start()
        place = f"{story.reads}-0"
        entries = [story.entry(ada=1) for _ in range(2)]
        for count, entry in enumerate(entries, 1):
            story.row("ada", count, count, entry)
        story.stop()
        lost, *others = [story.entry(ada=10), story.entry(ada=1), story.entry(ada=1)]
        gap = {"gaps": {place: [lost.offset, lost.offset + 1]}}
        story.history.add(Mark(at_ms=1, fault=Happening.INPUT_TRUNCATED.text, evidence=gap))
        story.start()
        for begin, end in resets:
            story.history.add(
                Notice(
                    at_ms=2,
                    application="app",
                    name="a",
                    code="offset-reset",
                    topic=story.reads,
                    partition=0,
                    begin=begin,
                    end=end,
                )
            )
        for count, entry in enumerate(others, 3):
            story.row("ada", count, count, entry)
        story.stop()
        story.settled(others[-1].offset + 1)
        return story

    def test_in_a_notice(self) -> None:
        """The outputs are the fold of an input without the deleted and named records."""
        story = self.after_a_gap((2, 3))

        assert story.found("gap-named") == []
        assert story.found("fold") == []
        assert story.found("relation") == []

    @pytest.mark.parametrize("resets", [(), ((2, 4),), ((3, 3),)])
    def test_in_none(self, resets: tuple[tuple[int, int], ...]) -> None:
        """Silence is a loss, and so are records that were left out though they are there."""
        story = self.after_a_gap(*resets)

        assert [name for name, _, _ in story.found("gap-named")][-1] == "lost"

    def test_no_notice_excuses_a_record_that_is_there(self) -> None:
        """Records that nothing deleted stay a part of the input, whatever a notice says."""
        story = self.after_a_gap((2, 5))

        assert [r.offset for r in view_of(story.history, "app").inputs] == [0, 1, 3, 4]


class TestFileNamed:
    """A design that finds half a file goes on, or says which file it is."""

    @pytest.mark.parametrize(
        ("torn", "said", "found"),
        [
            ("durable/waiting-7.json", "storage: waiting-7.json cannot be read", []),
            ("durable/waiting-7.json", "storage: waiting-77.json cannot be read", ["stuck"]),
            ("durable/waiting-7.json", "storage: a file cannot be read", ["stuck"]),
            (
                "durable/checkpoint/offsets/3",
                "storage: Incomplete log file in file:/d/checkpoint/offsets/3",
                [],
            ),
            (
                "durable/checkpoint/offsets/3",
                "storage: batch 3 cannot be read",
                ["stuck"],
            ),  # a number says nothing
        ],
    )
    def test_what_is_said(self, torn: str, said: str, found: list[str]) -> None:
        """A word before the file was torn is about something else."""
        story = self.torn(torn)
        story.history.add(
            Instance(at_ms=3, application="app", name="a", event="failed", detail=said)
        )

        assert [name for name, _, _ in story.found("file-named")] == found

    def test_read_and_survived(self) -> None:
        """If the file was read, a design may go on; its outputs tell whether it is right."""
        story = self.torn("durable/waiting-7.json")
        story.history.add(Mark(at_ms=3, fault="", happening=Happening.TORN_FILE_READ, evidence={}))

        assert story.found("file-named") == []

    def test_named_in_its_log(self) -> None:
        """An application says it anywhere in its log, and its last words may be others."""
        story = self.torn("rocksdb/totals/MANIFEST-000005")
        story.history.add(
            Instance(at_ms=3, application="app", name="a", event="failed", detail="it has ended")
        )
        assert [name for name, _, _ in story.found("file-named")] == ["stuck"]
        story.history.add(Mark(at_ms=4, fault="", happening=Happening.TORN_FILE_NAMED, evidence={}))

        assert story.found("file-named") == []

    def test_read_by_nobody(self) -> None:
        """That a design goes on shows nothing if it did not read the file."""
        with pytest.raises(Inconclusive, match="no start was seen to read it"):
            self.torn("state/OPTIONS-7").found("file-named")

    @staticmethod
    def torn(file: str) -> Story:
        """Tell a batcher that has stopped once before this file was torn."""
        story = Story("batcher")
        story.start()
        story.history.add(
            Instance(at_ms=1, application="app", name="a", event="failed", detail="storage: 3")
        )
        story.history.add(Mark(at_ms=2, fault=Happening.FILE_TORN.text, evidence={"file": file}))
        return story
