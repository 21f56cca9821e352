"""Relay every record of `input` to `output` with aiokafka, and add a hop.

Begin at `Relay.step`. The client's loop is asyncio's, on a thread of its own.
"""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any, ClassVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import (
    InvalidProducerEpoch,
    KafkaError,
    KafkaTimeoutError,
    ProducerFenced,
)
from google.protobuf.message import DecodeError

from upheld.adapter import Design, Failed, serve
from upheld.generators.envelope_pb2 import Envelope, Hop

BATCH = 1_000
ANSWER_S = 50
REQUEST_MS = 10_000  # a connection that is silent for as long is given up


def transform(record: Any) -> bytes:
    """Append a record's position. Without key, value or envelope the design stops."""
    at = f"{record.topic}-{record.partition}@{record.offset}"
    try:
        envelope = Envelope.FromString(None if record.key is None else record.value)
    except (DecodeError, TypeError) as error:
        raise Failed("poison", f"{at} cannot be read: {error!r}") from None
    hop = Hop(topic=record.topic, partition=record.partition, offset=record.offset)
    envelope.chain.append(hop)
    return envelope.SerializeToString()


class Held(ConsumerRebalanceListener):
    """Commit what was written before partitions go, and say when some have come."""

    def __init__(self, relay: "Relay") -> None:
        self.relay = relay

    async def on_partitions_revoked(self, _revoked: set[Any]) -> None:
        """Wait until no batch is under way: its offsets are committed then."""
        async with self.relay.working:
            pass

    async def on_partitions_assigned(self, assigned: set[Any]) -> None:
        """Let `open` answer."""
        if assigned:
            self.relay.held.set()


class Relay(Design):
    """The relay: it writes what it reads, and commits every interval."""

    hello: ClassVar = {
        "name": "aiokafka",
        "version": "0.14.0",
        "language": "python",
        "programs": ["relay"],
        "modes": ["at_least_once", "exactly_once"],
    }

    def boot(self) -> None:
        """Start the loop of the client."""
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def call(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something on the client's loop, and wait for its end."""
        asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        """Settle what a predecessor left, and join the group until partitions are held."""
        self.application_id = start["application_id"]
        self.exactly_once = start.get("mode") == "exactly_once"
        self.output = start["topics"]["output"]
        self.interval_s = int(start["parameters"].get("commit_interval_ms", 100)) / 1000
        self.held = asyncio.Event()
        self.working = asyncio.Lock()
        try:
            self.call(self.connect(start))
        except (KafkaError, TimeoutError) as error:
            raise Failed("storage", repr(error)) from None
        return {
            "consumer_group": self.application_id,
            "transactional_id_prefix": self.application_id,
        }

    async def connect(self, start: dict[str, Any]) -> None:
        """Make the clients. The same transactional id at every start fences a predecessor."""
        session_ms = start["session_timeout_ms"]
        client = {"bootstrap_servers": start["bootstrap"], "retry_backoff_ms": 20}
        writes: dict[str, Any] = {"enable_idempotence": True, "request_timeout_ms": REQUEST_MS}
        if self.exactly_once:
            writes["transactional_id"] = self.application_id
            writes["transaction_timeout_ms"] = start["transaction_timeout_ms"]
        self.producer = AIOKafkaProducer(**client, **writes)
        await self.producer.start()
        self.consumer = AIOKafkaConsumer(
            **client,
            group_id=self.application_id,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset=start["offset_reset"],
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=session_ms // 4,
            fetch_max_wait_ms=100,
        )
        self.consumer.subscribe([start["topics"]["input"]], listener=Held(self))
        await self.consumer.start()
        await asyncio.wait_for(self.held.wait(), ANSWER_S)

    def run(self, stopping: threading.Event) -> None:
        """Relay until told to stop. A failure says why."""
        self.call(self.relay(stopping))

    async def relay(self, stopping: threading.Event) -> None:
        """Relay batch after batch, and close the clients."""
        try:
            while not stopping.is_set():
                async with self.working:
                    await self.step()
                await asyncio.sleep(0)
            await self.consumer.stop()
            await self.producer.stop()
        except (ProducerFenced, InvalidProducerEpoch) as error:
            raise Failed("fenced", repr(error)) from None
        except (KafkaError, TimeoutError) as error:
            raise Failed("storage", repr(error)) from None

    async def step(self) -> None:
        """Write what has arrived within an interval, and commit its offsets."""
        within_ms = int(self.interval_s * 1000)
        batches = await self.consumer.getmany(timeout_ms=within_ms, max_records=BATCH)
        if not batches:
            return
        offsets = {place: records[-1].offset + 1 for place, records in batches.items()}
        records = [record for batch in batches.values() for record in batch]
        async with contextlib.AsyncExitStack() as stack:
            if self.exactly_once:
                await stack.enter_async_context(self.producer.transaction())
            await self.write(records)
            if self.exactly_once:
                await self.producer.send_offsets_to_transaction(offsets, self.application_id)
            else:
                await self.consumer.commit(offsets)

    async def write(self, records: list[Any]) -> None:
        """Write records until each is acknowledged."""
        sent = [await self.buffered(record) for record in records]
        await asyncio.gather(*sent)

    async def buffered(self, record: Any) -> asyncio.Future[Any]:
        """Put a record's output into the producer's buffer; return its acknowledgement to come.

        The buffer is full while a connection is silent. A timeout says that the output is not in
        it, so another try can write nothing twice.
        """
        while True:
            with contextlib.suppress(KafkaTimeoutError):
                return await self.producer.send(
                    self.output,
                    transform(record),
                    record.key,
                    timestamp_ms=record.timestamp,
                    headers=list(record.headers),
                )


serve(Relay())
