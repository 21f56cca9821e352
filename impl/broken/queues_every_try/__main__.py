"""Queues at every try what could not be written.

The mistake shows in memory, while the design's store is away.
"""

import json
from typing import Any

import redis

from upheld.adapter import serve
from upheld.impl.plain import Plain


class QueuesEveryTry(Plain):
    hello = Plain.hello | {"name": "broken/queues_every_try"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        reply = super().open(start)
        self.queue = list[str]()
        if address := start["stores"].get("redis"):
            vars(self.store)["client"] = redis.Redis.from_url(address, retry=None)
        return reply

    def commit(self) -> None:
        while self.dirty:
            try:
                super().commit()
            except redis.RedisError:
                self.queue.append(json.dumps(self.program.unsaved))


serve(QueuesEveryTry())
