"""Goes on if its store does not answer, and commits what it did not write.

The mistake is to take a store for a cache. It shows in a store that is slow, or gone, while
something changes.
"""

from typing import Any

import redis

from upheld.adapter import serve
from upheld.impl.plain import Plain


class DropsWhatItCannotStore(Plain):
    hello = Plain.hello | {"name": "broken/drops_what_it_cannot_store"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        reply = super().open(start)
        if address := start["stores"].get("redis"):
            vars(self.store)["client"] = redis.Redis.from_url(
                address, retry=None, socket_timeout=0.2
            )
        return reply

    def commit(self) -> None:
        try:
            super().commit()
        except redis.RedisError:
            self.program.unsaved = {}
            super().commit()


serve(DropsWhatItCannotStore())
