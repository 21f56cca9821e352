"""Answers every third question alone, and is not ready between.

The design answers no wrong row.
"""

from itertools import count
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class AsksForPatience(Plain):
    hello = Plain.hello | {"name": "asks_for_patience"}
    asked = count()

    def query(self, table: str, key: str) -> dict[str, Any]:
        if next(self.asked) % 3:
            return {"type": "not_ready"}
        return super().query(table, key)


serve(AsksForPatience())
