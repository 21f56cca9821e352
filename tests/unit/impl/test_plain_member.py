"""The plain design as a member of a group whose partitions the broker assigns."""

from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID, KafkaError, KafkaException
from confluent_kafka import TopicPartition as At

from upheld.impl.plain import OutputRecord, Place, Plain, Program

COMMITTED = {0: 10, 1: 20, 2: OFFSET_INVALID}  # partition -> offset


class Broker:
    """A consumer and a producer in one, which note what is asked of them."""

    def __init__(self, *held: int) -> None:
        self.held = list(held)
        self.asked: list[tuple[object, ...]] = []
        self.refuses: KafkaError | None = None  # the next commit

    def assignment(self) -> list[At]:
        """Return the partitions that are held."""
        return [At("input", each) for each in self.held]

    def committed(self, places: list[At], _: float) -> list[At]:
        """Return the committed offsets."""
        return [At(each.topic, each.partition, COMMITTED[each.partition]) for each in places]

    def position(self, places: list[At]) -> list[At]:
        """Return how far each partition was read."""
        return [At(each.topic, each.partition, 99) for each in places]

    def incremental_assign(self, new: list[At]) -> None:
        """Hold more partitions."""
        self.held += [each.partition for each in new]
        self.asked.append(("assign", {each.partition: each.offset for each in new}))

    def incremental_unassign(self, gone: list[At]) -> None:
        """Hold fewer partitions."""
        self.held = [each for each in self.held if each not in {at.partition for at in gone}]
        self.asked.append(("unassign", [each.partition for each in gone]))

    def assign(self, whole: list[At]) -> None:
        """Hold these partitions and no others."""
        self.asked.append(("whole", {each.partition: each.offset for each in whole}))

    def seek(self, at: At) -> None:
        """Move a partition that is held."""
        assert at.partition in self.held
        self.asked.append(("seek", at.partition, at.offset))

    def commit(self, offsets: list[At], *, asynchronous: bool) -> None:
        """Take the offsets, or refuse them once."""
        assert not asynchronous
        if self.refuses:
            error = self.refuses
            self.refuses = None
            raise KafkaException(error)
        self.asked.append(("commit", {each.partition: each.offset for each in offsets}))

    def abort_transaction(self, _: float) -> None:
        """End the transaction."""
        self.asked.append(("abort",))

    def flush(self, _: float) -> int:
        """Have nothing left to send."""
        return 0


class Counter(Program):
    """A program that counts what it has taken since its state was read."""

    count = 0

    def take(self, _: object) -> None:
        """Count a message."""
        self.count += 1

    def changed(self) -> list[OutputRecord]:
        """Send nothing."""
        return []


class Message:
    """A record of a partition."""

    def __init__(self, partition: int, offset: int) -> None:
        self._partition = partition
        self._offset = offset

    def error(self) -> None:
        """Return no error."""

    def topic(self) -> str:
        """Return the topic."""
        return "input"

    def partition(self) -> int:
        """Return the partition."""
        return self._partition

    def offset(self) -> int:
        """Return the offset."""
        return self._offset


class Alone(Plain):
    """The design with a broker in its own process."""

    def __init__(self, broker: Broker, *, protocol: str | None = "consumer", **start: Any) -> None:
        self.start = {"program": "counter", "parameters": {}, "group_protocol": protocol, **start}
        told: Any = broker
        self.consumer = self.producer = told
        self.programs = {"counter": Counter}
        self.program = Counter()
        self.exactly_once = self.in_transaction = self.dirty = False
        self.store = self.refused = None
        self.after = {}
        self.chunk = []
        self.committed = []
        self.kept = {}

    def topic_ids(self) -> dict[str, bytes]:
        """Return no ids."""
        return {}

    def look_for_a_gap(self, _: object) -> None:
        """Find none."""

    def send(self, rows: list[OutputRecord]) -> None:
        """Have nothing to send."""
        assert not rows

    def begin(self) -> None:
        """Note that something changes."""
        self.in_transaction = self.exactly_once
        self.dirty = True

    def reads(self, *messages: Message) -> None:
        """Read and apply messages."""
        given: Any = list(messages)
        self.chunk = given
        self.apply_chunk()

    def given(self, *partitions: int) -> None:
        """Be told what is new."""
        told: Any = self.consumer
        self.on_given(told, [At("input", each) for each in partitions])


def test_what_is_kept_begins_again_beside_what_is_new() -> None:
    """The aborted transaction held records of both, and the state is read back whole."""
    broker = Broker(0)
    design = Alone(broker)
    design.exactly_once = True
    design.reads(Message(0, 10))

    design.given(1, 2)

    assert broker.asked == [
        ("abort",),
        ("assign", {1: 20, 2: OFFSET_BEGINNING}),
        ("seek", 0, 10),
    ]
    assert isinstance(design.program, Counter)
    assert design.program.count == 0
    assert [at.partition for at in design.committed] == [0, 1, 2]


def test_what_is_kept_begins_again_beside_what_is_gone() -> None:
    """If nothing is kept, nothing is read back."""
    broker = Broker(0, 2)
    design = Alone(broker)
    told: Any = broker

    design.on_taken(told, [At("input", 0)])
    design.on_taken(told, [At("input", 2)])

    assert broker.asked == [
        ("unassign", [0]),
        ("assign", {}),
        ("seek", 2, OFFSET_BEGINNING),
        ("unassign", [2]),
    ]
    assert design.committed == []


def test_without_transactions_all_that_was_read_is_committed_first() -> None:
    """The partitions that go are still the member's own."""
    broker = Broker()
    design = Alone(broker)
    design.given(0, 1)
    chunk: Any = [Message(1, 20), Message(1, 21)]
    design.chunk = chunk
    told: Any = broker

    design.on_taken(told, [At("input", 0)])

    assert ("commit", {0: 99, 1: 99}) in broker.asked
    assert broker.asked.index(("commit", {0: 99, 1: 99})) < broker.asked.index(("unassign", [0]))


@pytest.mark.parametrize("code", [KafkaError.STALE_MEMBER_EPOCH, KafkaError.ILLEGAL_GENERATION])
def test_a_commit_that_is_too_late_begins_again(code: int) -> None:
    """The broker has moved the member on, and the next heartbeat says so."""
    broker = Broker(0)
    design = Alone(broker)
    design.given()
    design.reads(Message(0, 10))
    broker.refuses = KafkaError(code)

    design.commit()

    assert broker.asked[-1] == ("seek", 0, 10)
    assert not design.dirty


def test_a_member_that_is_no_longer_one_stops() -> None:
    """Another instance may have its partitions, by either protocol."""
    for protocol, code in [
        ("consumer", KafkaError.UNKNOWN_MEMBER_ID),
        ("classic", KafkaError.ILLEGAL_GENERATION),
    ]:
        broker = Broker(0)
        design = Alone(broker, protocol=protocol)
        design.reads(Message(0, 10))
        broker.refuses = KafkaError(code)

        with pytest.raises(KafkaException):
            design.commit()


def test_an_assignment_of_the_classic_protocol_is_whole() -> None:
    """It replaces the one before, whatever that was."""
    broker = Broker(0)
    design = Alone(broker, protocol=None)
    told: Any = broker

    design.on_assign(told, [At("input", 1)])

    assert broker.asked == [("whole", {1: 20})]
    assert design.positions() == [At("input", 1, 99)]
    assert set(design.callbacks()) == {"on_assign", "on_revoke"}


def test_the_session_is_the_groups_where_the_broker_assigns() -> None:
    """The client refuses settings of a session by that protocol."""
    incremental = Alone(Broker(), session_timeout_ms=2_000)

    assert incremental.member_settings() == {"group.protocol": "consumer"}

    class Named(Alone):
        def member(self) -> str:
            return "a-4"

    classic = Named(Broker(), protocol="classic", session_timeout_ms=2_000)
    assert classic.member_settings() == {
        "group.instance.id": "a-4",
        "session.timeout.ms": 2_000,
        "heartbeat.interval.ms": 500,
    }


@pytest.mark.parametrize(
    ("protocol", "is_divided", "says"),
    [
        (None, False, None),
        ("classic", True, None),
        ("consumer", True, None),
        ("streams", True, "the group has the protocol classic or consumer, and not streams"),
        ("consumer", False, "one instance works for all, and joins no group"),
    ],
)
def test_a_protocol_that_cannot_be_spoken(
    protocol: str | None, is_divided: bool, says: str | None
) -> None:
    """The reason says which, or that no group is joined."""
    design = Alone(Broker(), protocol=protocol, several=True)
    design.program.is_divided = is_divided

    assert design.unsupported() == says


def test_offsets_are_asked_for_again_once_the_member_has_moved_on() -> None:
    """The client raises the error of the whole request."""

    class Moving(Broker):
        def committed(self, places: list[At], within_s: float) -> list[At]:
            if not self.asked:
                self.asked.append(("stale",))
                raise KafkaException(KafkaError(KafkaError.STALE_MEMBER_EPOCH))
            return super().committed(places, within_s)

    design = Alone(Moving(0))
    design.given()

    assert [(at.partition, at.offset) for at in design.committed] == [(0, 10)]
    assert design.settled == {Place("input", 0): 10}
