"""Goes on where its store does not answer, and commits what it could not write.

Whoever takes a store for a cache makes this mistake. It shows in a store that is gone while something changes.
"""

from typing import Any

import redis

from streamgate.adapter import serve
from streamgate.impl.plain import Plain


class DropsWhatItCannotStore(Plain):
    hello = Plain.hello | {"name": "broken/drops_what_it_cannot_store"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        impatient, reply = redis.Redis.from_url(start["stores"]["redis"], retry=None), super().open(start)
        vars(self.store)["client"] = impatient
        return reply

    def commit(self) -> None:
        try:
            super().commit()
        except redis.RedisError:
            self.program.unsaved = {}
            super().commit()


serve(DropsWhatItCannotStore())
