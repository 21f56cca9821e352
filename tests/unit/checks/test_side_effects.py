"""Nothing but the outputs changes on the broker, on hand-written histories."""

from typing import Any
from uuid import UUID

import pytest
from histories import Story
from stories import BOTH_PROGRAMS, names, two_signals

from upheld.history import History
from upheld.history.events import Record
from upheld.protocol.limits import Limit


class TestSameRows:
    """Both modes leave the same last rows."""

    def both(self, cents: int | None, other_cents: int | None) -> Story:
        """Tell one entry for each mode.

        One of the two inputs has a marker before it.
        """
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
        """Only the last row counts; earlier rows are the relation's business."""
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
        """A row against the contract is the same as nothing."""
        story = self.both(5, 5)
        entry = next(iter(story.history.of(Record)))
        story.row("ada", 5, 1, entry, value=b"?")

        assert story.found("same-rows") == [("phantom", "ada", None)]


class TestSideEffects:
    """Nothing else changes on the broker."""

    def appeared(
        self, *topics: str, groups: tuple[str, ...] = (), ours: bool = True, **start: Any
    ) -> Story:
        """Tell that these names appear beside an older topic and an older group."""
        story = Story() if ours else Story().on_a_shared_broker()
        story.names("app-entries", "app-balances", "old", groups=("old-group",))
        story.start(**start)
        story.names("app-entries", "app-balances", "old", *topics, groups=("old-group", *groups))
        return story

    def test_nothing(self) -> None:
        """The same names, and the group that `ready` named."""
        assert self.appeared(groups=("app-group",)).found("side-effects") == []
        assert self.appeared(groups=("its-own",), group="its-own").found("side-effects") == []

    @pytest.mark.parametrize(
        ("topic", "group"),
        [("app-changelog", "app-leader"), ("changelog__app--default", "leader-of-app")],
    )
    @pytest.mark.parametrize("ours", [True, False])
    def test_declared(self, topic: str, group: str, *, ours: bool) -> None:
        """A declared topic may appear if the application id stands anywhere in its name.

        So may a group with the id.
        """
        story = self.appeared(topic, groups=(group,), ours=ours, internal_topics=(topic,))

        assert story.found("side-effects") == []

    @pytest.mark.parametrize(
        ("topic", "declared", "why"),
        [
            ("app-changelog", (), "not declared"),
            ("changelog__app--default", (), "not declared"),
            ("foreign", (), "does not contain"),
            ("foreign", ("foreign",), "does not contain"),
        ],
    )
    def test_leaked(self, topic: str, declared: tuple[str, ...], why: str) -> None:
        """Any other topic is leaked, and it is told which rule it broke."""
        (anomaly,) = self.appeared(topic, internal_topics=declared).judged("side-effects")

        assert anomaly.name == "leaked-topic"
        assert topic in anomaly.text
        assert why in anomaly.text

    def test_topics_that_it_cannot_name(self) -> None:
        """A design that declares so is judged by its other names alone."""
        story = self.appeared("foreign", groups=("strange",))
        begun, *events = story.history.events
        limited = begun.model_copy(update={"cannot": (Limit.TOPIC_NAMES,)})
        story.history = History([limited, *events])

        (anomaly,) = story.judged("side-effects")

        assert "strange" in anomaly.text

    def test_a_leaked_transactional_id(self) -> None:
        """A transactional id without the application id is leaked unless it is random.

        An id that was there before is not new.
        """
        own = ("app-writer", "writer-of-app", str(UUID(int=7)), f"tx-{UUID(int=8).hex}-1")
        story = Story()
        story.names("app-entries", "app-balances", ids=("old",))
        story.names("app-entries", "app-balances", ids=("old", "host-1", *own))
        (anomaly,) = story.judged("side-effects")

        assert anomaly.name == "leaked-topic"
        assert "transactional id host-1" in anomaly.text

    def test_a_leaked_group(self) -> None:
        """A group that was not named is leaked unless its name has the application id."""
        assert self.appeared(groups=("foreign",)).found("side-effects") == [
            ("leaked-topic", None, None)
        ]

    def test_a_broker_that_others_use(self) -> None:
        """Foreign names are ignored on a broker that others use.

        A name that has the application id in it or was declared is not.
        """
        assert self.appeared("foreign", groups=("foreign",), ours=False).found("side-effects") == []
        assert self.appeared("app-changelog", ours=False).found("side-effects") == [
            ("leaked-topic", None, None)
        ]
        declared = self.appeared("foreign", ours=False, internal_topics=("foreign",))
        assert declared.found("side-effects") == [("leaked-topic", None, None)]

    def test_a_second_application(self) -> None:
        """Topics that the harness makes for a later application are no side effect."""
        story = self.appeared()
        story.beside("at_least_once")
        story.names("app-entries", "app-balances", "old", "other-entries", "other-balances")

        assert story.found("side-effects") == []


class TestNoTopics:
    """A topic of the application beside its program's is one too many."""

    @pytest.mark.parametrize(
        ("topic", "anomalies"), [("app-changelog", ["leaked-topic"]), ("theirs", [])]
    )
    def test_declared_or_not(self, topic: str, anomalies: list[str]) -> None:
        """Names of others are not the application's."""
        story = Story("batcher")
        story.names("app-visits", "app-batches")
        story.start(internal_topics=(topic,))
        story.names("app-visits", "app-batches", topic)

        assert names(story.found("no-topics")) == anomalies


class TestFootprint:
    """Beside its table it keeps few topics, none of them wide or a copy."""

    def test_what_is_kept(self) -> None:
        """One narrow topic beside the table is allowed."""
        story, *_ = two_signals()
        assert story.found("footprint", topics=1, partitions=2) == []
        story.keeps("app-repartition", 2)
        story.keeps("app-frequency", 2)
        assert story.found("footprint", topics=1, partitions=2) == []

    @pytest.mark.parametrize(
        ("topic", "partitions", "repeated"),
        [("app-x", 3, 0), ("app-x", 1, 5), ("app-frequency", 3, 0)],
    )
    def test_too_wide_or_a_copy(self, topic: str, partitions: int, repeated: int) -> None:
        """A wide one, also if it is the table, and a copy of the table's rows are named."""
        story, *_ = two_signals()
        story.keeps(topic, partitions, repeated)
        (anomaly,) = story.judged("footprint", topics=1, partitions=2)

        assert (anomaly.name, topic in anomaly.text) == ("leaked-topic", True)

    def test_too_many(self) -> None:
        """A second one is named with the first."""
        story, *_ = two_signals()
        story.keeps("app-x")
        story.keeps("app-y")
        (anomaly,) = story.judged("footprint", topics=1, partitions=2)

        assert "app-x, app-y" in anomaly.text

    def test_more_than_its_table(self) -> None:
        """A design that declares nothing may keep as many bytes as its table has."""
        story, motor, gripper = two_signals()
        story.pulse("ada", motor, gripper)
        size = sum(
            len(r.key or b"") + len(r.value or b"")
            for r in story.history.of(Record)
            if r.topic == story.writes
        )
        assert size
        story.keeps("app-x", size_bytes=size)
        assert story.found("footprint", topics=1, partitions=2) == []
        story.keeps("app-x", size_bytes=size + 1)
        (anomaly,) = story.judged("footprint", topics=1, partitions=2)

        assert f"{size + 1} bytes, and declares {size}" in anomaly.text
