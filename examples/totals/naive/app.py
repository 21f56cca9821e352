"""The service that keeps totals, written without a thought of crashes.

Totals are in memory alone, and offsets are committed on a timer.
"""

import asyncio
import json
import os
import signal
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

BATCH = 500
WAIT_MS = 100
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


async def serve(stopping: asyncio.Event) -> None:
    """Keep the totals until told to stop."""
    producer = AIOKafkaProducer(bootstrap_servers=os.environ["KAFKA"])
    await producer.start()
    consumer = AIOKafkaConsumer(
        os.environ["ORDERS"],
        bootstrap_servers=os.environ["KAFKA"],
        group_id=os.environ["GROUP"],
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=SESSION_TIMEOUT_MS // 4,
        auto_commit_interval_ms=200,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    totals = Totals()
    try:
        while not stopping.is_set():
            batch = await consumer.getmany(timeout_ms=WAIT_MS, max_records=BATCH)
            for orders in batch.values():
                for each in orders:
                    total = totals.add(each.key, json.loads(each.value))
                    await producer.send(os.environ["TOTALS"], total, each.key)
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
