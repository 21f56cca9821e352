"""The loop that all programs of the plain design share: read, apply, send, commit.

It reads a chunk, applies it, sends what is due, and commits once per commit interval. Under
exactly_once, outputs and input offsets are one Kafka transaction, fenced by an instance's stable
transactional id and by the group's generation. Under at_least_once, every output is acknowledged
before the offsets are committed.

Records that wait for a batch are written to the shared disk before each commit, a file for each
partition. The commit holds the name of that file as the offset's metadata, so that what waits moves
on with its partition.
"""

import json
import threading
import time
import uuid
from typing import Final, NoReturn, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from upheld.adapter import Failed
from upheld.impl.common.clients import failure_of, with_timeout
from upheld.impl.common.effects import Effects
from upheld.impl.common.election import Election
from upheld.impl.common.stores import loudly
from upheld.impl.common.table import Table
from upheld.impl.plain.group import CHUNK, Group, offsets_of
from upheld.impl.plain.programs import HeaderValue, OutputRecord, Place

FENCED: Final = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
}


class Loop(Group):
    """The thread at work, between `open` and the stop."""

    output: str  # the topic of the last stage
    effects: Effects
    rows: Table | None  # queries are answered from here
    monitor: Consumer  # of the lag
    election: Election | None  # of the one instance that works, if the program is not divided
    refused: KafkaError | None  # why the first output was not taken, if one was not
    through: dict[str, int]  # where the last run ended

    def run(self, stopping: threading.Event) -> None:
        """Work until the stop, which commits what was applied."""
        try:
            with loudly(self.store_kind):
                self.work(stopping)
                self.send(self.program.rest())
                self.commit()
            self.through = {
                f"{place.topic}-{place.partition}": place.offset for place in self.positions()
            }
            self.consumer.close()
            if self.rows:
                self.rows.close()
        except KafkaException as error:
            self.give_up(error.args[0])
        except OSError as error:  # no room on the disk
            self.give_up(KafkaError(KafkaError._FS, str(error)))

    def work(self, stopping: threading.Event) -> None:
        """Read, apply and send, and commit once per interval."""
        name = "persistence_interval_ms" if self.store else "commit_interval_ms"
        interval_s = int(self.start["parameters"].get(name, 100)) / 1000
        due = time.monotonic() + interval_s
        while not stopping.is_set():
            if self.election and not self.election.look(0):
                raise Failed("fenced", f"another instance leads {self.election.topic}")
            self.read_chunk(max(0.005, min(0.05, due - time.monotonic())))
            self.apply_chunk()
            if time.monotonic() >= due:
                self.commit()
                due = time.monotonic() + interval_s

    def read_chunk(self, wait_s: float) -> None:
        """Wait for a message, and read until a chunk is full or nothing more is there.

        A rebalance may come before any message. Then those read before it are dropped or applied by
        its callbacks. So messages are read one by one into `chunk`, and never by `consume`. It
        would return the old messages beside those of the new assignment.
        """
        message = self.consumer.poll(wait_s)
        while message is not None:
            self.chunk.append(message)
            if len(self.chunk) >= CHUNK:
                break
            message = self.consumer.poll(0)

    def apply_chunk(self) -> None:
        """Apply what was read, and send what is due."""
        read = self.chunk
        self.chunk = []
        self.process([each for each in read if not self.is_end(each)])

    def is_end(self, message: Message) -> bool:
        """Whether a message only tells the end of a partition.

        The end is committed too if nothing but markers lies before it.
        """
        if not (error := message.error()) or error.code() != KafkaError._PARTITION_EOF:
            return False
        place = Place(message.topic() or "", message.partition() or 0)
        if (message.offset() or 0) > max(0, self.settled.get(place, 0)):
            self.begin()
        return True

    def process(self, messages: list[Message]) -> None:
        """Apply a chunk, and send what is due."""
        for message in messages:
            if error := message.error():
                # The coordinator is out of reach; the client asks again.
                if error.code() == KafkaError._TRANSPORT:
                    continue
                raise KafkaException(error)
            try:
                self.program.take(message)
            except Failed as failure:
                self.set_aside(message, failure)
            self.begin()
        for role, rows in self.program.upstream().items():
            self.hand_over(rows, self.start["topics"][role])
        self.send(self.program.changed())

    def set_aside(self, message: Message, failure: Failed) -> None:
        """Send a record that cannot be read to the dead letters, as any other output.

        Raises:
            Failed: There is no topic for dead letters, or the failure is another one.
        """
        if failure.kind != "poison" or "dead_letters" not in self.start["topics"]:
            raise failure
        told = {
            "reason": failure,
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
        }
        headers = cast(list[tuple[str, HeaderValue]], message.headers() or [])
        added = [(name, str(said).encode()) for name, said in told.items()]
        letter = OutputRecord(
            key=message.key(),
            value=message.value(),
            headers=[*headers, *added],
            timestamp_ms=message.timestamp()[1],
        )
        self.hand_over([letter], self.start["topics"]["dead_letters"])

    def begin(self) -> None:
        """Note that something changes, and open a transaction if the mode asks for one."""
        if self.exactly_once and not self.in_transaction:
            self.producer.begin_transaction()
            self.in_transaction = True
        self.dirty = True

    def send(self, rows: list[OutputRecord]) -> None:
        """Send rows of the last stage."""
        self.hand_over(rows, self.output)

    def hand_over(self, rows: list[OutputRecord], topic: str) -> None:
        """Hand rows to the producer; a refusal shows at the next commit."""
        if rows:
            self.begin()
        on_delivery = None if self.exactly_once else self.delivered
        report = self.effects.report
        produce = self.producer.produce
        for key, value, headers, timestamp_ms in rows:
            report(key, value)
            while True:
                try:
                    produce(
                        topic,
                        value,
                        key,
                        headers=headers,
                        timestamp=timestamp_ms,
                        on_delivery=on_delivery,
                    )
                    break
                except BufferError:  # the queue is full: let deliveries make room
                    self.producer.poll(0.1)
        self.producer.poll(0)

    def delivered(self, error: KafkaError | None, _: Message) -> None:
        """Remember the first refusal.

        In a transaction the client does so itself, and raises it at the next call.
        """
        self.refused = self.refused or error

    def commit(self) -> None:
        """Commit outputs first, then the states in the store, then the offsets.

        Under exactly_once, outputs and offsets are one transaction.
        """
        if not self.dirty:
            return
        self.await_outputs()
        if self.refused:
            raise KafkaException(self.refused)
        if self.store:
            for stage, part in self.program.stages().items():
                self.store.write(stage, part.unsaved or {})
                part.unsaved = {}
        before = self.kept
        self.kept = self.keep()
        positions = self.positions()
        self.commit_offsets(positions)
        self.settled |= offsets_of(positions)
        self.in_transaction = False
        self.dirty = False
        for name in before.values():
            (self.folder / name).unlink(missing_ok=True)

    def await_outputs(self) -> None:
        """Wait until every output is acknowledged, or one is refused."""
        if self.producer.flush(30) and not self.refused:
            self.refused = KafkaError(
                KafkaError._TIMED_OUT, "outputs were not acknowledged within 30 s"
            )

    def commit_offsets(self, positions: list[TopicPartition]) -> None:
        """Commit these offsets, and under exactly_once the transaction with them."""
        if self.exactly_once:
            with_timeout(
                10, self.producer.send_offsets_to_transaction, positions, self.membership(), 10
            )
            self.producer.commit_transaction(30)
        else:
            self.consumer.commit(offsets=positions, asynchronous=False)

    def keep(self) -> dict[Place, str]:
        """Write down what waits of each partition, in a file of its own.

        Another instance may take over one partition alone. Return the names of the files, which no
        other commit has.
        """
        names = dict[Place, str]()
        for place, waiting in self.program.waiting().items():
            names[place] = f"waiting-{uuid.uuid4().hex}.json"
            (self.folder / names[place]).write_text(json.dumps(waiting))
        return names

    def give_up(self, error: KafkaError) -> NoReturn:
        """Stop loudly, leaving no open transaction."""
        if self.in_transaction and error.code() not in FENCED:
            error = self.first_error(error)
            try:
                self.producer.abort_transaction(10)
            except KafkaException as failure:
                if failure.args[0].code() in FENCED:  # the first error came of it
                    error = failure.args[0]
        said = f"{error.name()}: {error.str()}"
        raise (
            Failed("fenced", said)
            if error.code() in FENCED
            else failure_of(error, self.output, said)
        )

    def first_error(self, error: KafkaError) -> KafkaError:
        """Return why a transaction has failed, if a call says only that it has.

        The next transaction cannot begin, and that error is the first one of this transaction.
        """
        if error.code() != KafkaError._STATE:
            return error
        try:
            self.producer.begin_transaction()
        except KafkaException as failure:
            return cast(KafkaError, failure.args[0])
        return error
