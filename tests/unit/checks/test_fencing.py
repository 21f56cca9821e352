"""Only the owner of a partition writes, on hand-written histories."""

from typing import Any

import pytest
from histories import Found, Story

from upheld.history.events import Notice, Record
from upheld.history.marks import Look
from upheld.judging.rejudge import judge
from upheld.verdicts import Inconclusive, NotOffered, Undeclared


class TestSilent:
    """Nothing of the paused instance is visible."""

    def taken_over(self, *, zombie: tuple[int, int] = (7, 0), stable: int = 1) -> Story:
        """Tell that producer 7 is taken over by producer 7 of epoch 1.

        Producer 7 shows one row before, and is paused in its next transaction.
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
        """The zombie's open transaction is aborted, and nothing follows it.

        Its earlier outputs are its own.
        """
        assert self.taken_over().found("silent") == []

    def test_a_marker_follows(self) -> None:
        """Markers of a settled transaction are no output."""
        story = self.taken_over()
        story.batch(6, 6, 7, epoch=1, control="abort")

        assert story.found("silent") == []

    def test_its_transaction_becomes_visible(self) -> None:
        """A zombie that commits its open transaction is caught by producer id and epoch.

        It is caught below the recorded end too.
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
        """Any record at or above the recorded end is caught, whichever producer wrote it.

        Nothing says that it was aborted.
        """
        story = self.taken_over()
        story.batch(6, 6, producer, epoch)

        assert [name for name, _, _ in story.found("silent")] == ["fenced-but-emitting"]

    @pytest.mark.parametrize(
        ("end", "expected"), [("abort", []), ("commit", ["fenced-but-emitting"])]
    )
    def test_what_it_appends_ends(self, end: str, expected: list[str]) -> None:
        """A record appended by a zombie was never visible if its transaction was aborted."""
        story = self.taken_over()
        story.batch(6, 7, 9)
        story.batch(8, 8, 9, epoch=1, control=end)

        assert [name for name, _, _ in story.found("silent")] == expected

    def test_another_transaction_is_aborted(self) -> None:
        """The marker of another producer, or of a later transaction, aborts nothing of it."""
        story = self.taken_over()
        story.batch(6, 6, 9)
        story.batch(7, 7, 8, control="abort")
        story.batch(8, 8, 9, control="commit")
        story.batch(9, 9, 9, control="abort")

        assert [name for name, _, _ in story.found("silent")] == ["fenced-but-emitting"]

    def test_it_appends_outside_of_a_transaction(self) -> None:
        """A record outside of any transaction is visible at once, and never aborted."""
        story = self.taken_over()
        story.batch(6, 6, 9, transactional=False)
        story.batch(7, 7, 9, control="abort")

        assert [name for name, _, _ in story.found("silent")] == ["fenced-but-emitting"]

    def test_a_file_holds_the_same(self, tmp_path: Any) -> None:
        """Writers are pairs in a file as well."""
        story = self.taken_over()
        story.row("ada", 11, 2, next(iter(story.history.of(Record))), offset=1)
        story.claims("silent")

        assert judge(story.recorded(tmp_path / "h.jsonl")).anomalies == story.judged("silent")


class TestOwners:
    """No partition has two owners at a time."""

    def shared(self, writers: list[int], leaves: str = "b") -> Story:
        """Tell two instances whose producers 7 and 8 write ada's rows in this order.

        Then an instance leaves.
        """
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
        """Results of one input partition lie on several output partitions.

        No two of these are compared.
        """
        story = self.shared([7, 7, 7, 8, 8])
        for number, producer in enumerate([7, 7, 8]):
            story.row("bob", number + 1, number + 1, story.entry(bob=1), partition=1)
            story.batch(number, number, producer, partition=1)

        assert story.found("owners") == []

    def test_each_input_partition_has_an_owner(self) -> None:
        """Two producers that alternate on one output may each own an input partition."""
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
        """A producer that took a producer id over has a later epoch.

        Kafka has fenced the one that had it before.
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
        """Producers without ids cannot be told apart."""
        with pytest.raises(NotOffered, match="no ids"):
            self.shared([-1, -1]).judged("owners")


class TestReleased:
    """Readers pass the transaction of a dead instance within its bound."""

    @pytest.mark.parametrize(
        ("stable_ms", "expected"), [(0, []), (4500, []), (4501, [("stuck", None, None)])]
    )
    def test_the_bound(self, stable_ms: int, expected: list[Found]) -> None:
        """The wait is measured until the last stable offset is the end.

        The bound itself is in time.
        """
        story = Story()
        story.settled(0, stable_ms=9999)
        story.settled(0, stable_ms=stable_ms, down=False)

        assert story.found("released", bound_ms=4500) == expected


class TestHandedOver:
    """Of two clusters only the active one writes."""

    def switched(self, *writers: int, at: int = 2, first: int = 1) -> Story:
        """Tell producers that write ada's rows in this order.

        The second cluster stands by from the second row on.
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
        """The old cluster writes up to the switch, and the new one from there on.

        The old one may write beside one that stands by.
        """
        assert self.switched(7, 7, 8, 8).found("handed-over") == []

    @pytest.mark.parametrize(
        ("writers", "who"),
        [((7, 8, 8, 8), "that stands by"), ((7, 7, 8, 7), "that has handed over")],
    )
    def test_out_of_turn(self, writers: tuple[int, ...], who: str) -> None:
        """A cluster that writes before its turn is told from one that writes after it."""
        (anomaly,) = self.switched(*writers).judged("handed-over")

        assert (anomaly.name, who in anomaly.text) == ("fenced-but-emitting", True)

    def test_an_aborted_transaction_out_of_turn(self) -> None:
        """A record of an aborted transaction was never visible, so it is out of no turn."""
        story = self.switched(7, 7, 8, 8)
        story.batch(4, 4, 7, control="commit")
        story.batch(5, 5, 7)
        story.batch(6, 6, 7, control="abort")

        assert story.found("handed-over") == []

    def test_one_wrote_nothing(self) -> None:
        """A cluster that never wrote was silent, and shows nothing."""
        story = self.switched(7, 7)
        story.ends(2, Look.HANDED_OVER.text)

        with pytest.raises(Inconclusive):
            story.judged("handed-over")


class TestNoticed:
    """Two deployments under the same ids share, or one stops loudly or is refused."""

    def shared(self, *producers: int) -> Story:
        """Tell that two deployments share the input.

        The producers wrote the rows of one partition in this order.
        """
        story = Story()
        story.start()
        story.start("b")
        for number, producer in enumerate(producers):
            story.row("ada", 5 * (number + 1), number + 1, story.entry(ada=5))
            story.batch(number, number, producer)
        story.shares()
        return story

    def test_one_more_instance(self) -> None:
        """A design that may scale takes the second deployment as an instance.

        Each partition has one owner at a time.
        """
        assert self.shared(7, 7, 8).found("noticed") == []

    def test_two_owners(self) -> None:
        """Two that write the rows of one partition by turns do not share it."""
        story = self.shared(7, 8, 7, 8)

        assert [name for name, *_ in story.found("noticed")] == ["fenced-but-emitting"]

    def test_owners_that_the_group_alone_shows(self) -> None:
        """Its members held each partition once, though no output says who wrote it."""
        story = self.shared(-1, -1)

        assert story.found("noticed") == []
        with pytest.raises(Undeclared):
            story.found("owners")

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

    def test_a_supervisor_starts_it_again(self) -> None:
        """An instance that gives up has noticed, though it is there again at once."""
        story = Story()
        story.start()
        story.start("b")
        story.history.add(Notice(at_ms=0, application="ledger", name="a", code="recovered"))

        assert story.found("noticed") == []

    def test_a_failure_before(self) -> None:
        """A failure before the second deployment began has nothing to do with it."""
        story = Story()
        story.start()
        story.failed("storage: the disk is full")
        story.start()
        story.start("b")

        assert [name for name, *_ in story.found("noticed")] == ["fenced-but-emitting"]
