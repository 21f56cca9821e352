"""Joins its group under a new name at every start.

Its session timeout is its own choice. The mistake is to keep the client's defaults. It shows after
a crash: the group gives the partitions of the dead instance away only when its session is over.
"""

from typing import Any
from uuid import uuid4

from upheld.adapter import serve
from upheld.impl.plain import Plain


class WaitsForTheDead(Plain):
    hello = Plain.hello | {"name": "broken/waits_for_the_dead"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        return super().open(start | {"session_timeout_ms": 25_000, "instance": uuid4().hex})


serve(WaitsForTheDead())
