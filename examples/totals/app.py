"""A service that keeps what each account has spent, on asyncio.

It reads orders, and writes the total of an account after each of its orders. Totals are in one
transaction with the offsets that they came from, and a start reads them back from where they were
written. Whatever fails ends the process, and its supervisor starts it again.
"""

import asyncio
import json
import os
import signal
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition

BATCH = 500  # orders in a transaction at most
WAIT_MS = 100
BOOTSTRAP = os.environ["KAFKA"]
GROUP = os.environ["GROUP"]
ORDERS = os.environ["ORDERS"]
TOTALS = os.environ["TOTALS"]
SESSION_TIMEOUT_MS = int(os.environ["SESSION_TIMEOUT_MS"])


class Totals:
    """The orders and the cents of each account."""

    def __init__(self) -> None:
        self.by_account: dict[bytes, tuple[int, int]] = {}

    def add(self, account: bytes, order: dict[str, Any]) -> bytes:
        """Count an order, and return the new total."""
        orders, cents = self.by_account.get(account, (0, 0))
        total = (orders + 1, cents + order["quantity"] * order["price_cents"])
        self.by_account[account] = total
        return json.dumps({"orders": total[0], "total_cents": total[1]}).encode()

    async def restore(self) -> None:
        """Read the totals that were committed, up to the end of their topic."""
        consumer = AIOKafkaConsumer(
            TOTALS,
            bootstrap_servers=BOOTSTRAP,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        )
        await consumer.start()
        try:
            partitions = list(consumer.assignment())
            for partition, end in (await consumer.end_offsets(partitions)).items():
                while await consumer.position(partition) < end:
                    found = await consumer.getmany(partition, timeout_ms=WAIT_MS)
                    for record in found.get(partition, ()):
                        total = json.loads(record.value)
                        self.by_account[record.key] = (total["orders"], total["total_cents"])
        finally:
            await consumer.stop()


class Assignments(ConsumerRebalanceListener):
    """Counts how often the service was given its partitions.

    The second time it reads again from the committed offsets, and its totals may hold orders of a
    transaction that was not committed by then.
    """

    def __init__(self) -> None:
        self.count = 0

    async def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        """Wait for what it is given next."""

    async def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        """Count it, unless it is empty."""
        self.count += bool(assigned)


async def serve(stopping: asyncio.Event) -> None:
    """Keep the totals until told to stop."""
    producer = AIOKafkaProducer(
        bootstrap_servers=BOOTSTRAP,
        transactional_id=os.environ["TRANSACTIONAL_ID"],
        transaction_timeout_ms=int(os.environ["TRANSACTION_TIMEOUT_MS"]),
    )
    await producer.start()  # what a predecessor left open is aborted now
    totals = Totals()
    await totals.restore()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=BOOTSTRAP,
        group_id=GROUP,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=SESSION_TIMEOUT_MS // 4,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    assignments = Assignments()
    consumer.subscribe([ORDERS], listener=assignments)
    await consumer.start()
    committed = dict[TopicPartition, int]()
    try:
        while not stopping.is_set():
            batch = await consumer.getmany(timeout_ms=WAIT_MS, max_records=BATCH)
            if assignments.count > 1:
                raise RuntimeError("the partitions were assigned anew; the totals are restored")
            read = {place: orders[-1].offset + 1 for place, orders in batch.items() if orders}
            if not read:  # what came may be markers alone: they are committed, too
                read = {each: await consumer.position(each) for each in consumer.assignment()}
                if read.items() <= committed.items():
                    continue
            async with producer.transaction():
                sent = [
                    await producer.send(
                        TOTALS, totals.add(each.key, json.loads(each.value)), each.key
                    )
                    for orders in batch.values()
                    for each in orders
                ]
                await asyncio.gather(*sent)
                await producer.send_offsets_to_transaction(read, GROUP)
            committed |= read
    finally:
        await consumer.stop()
        await producer.stop()


async def main() -> None:
    """Serve until SIGTERM."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    await serve(stopping)


if __name__ == "__main__":
    asyncio.run(main())
