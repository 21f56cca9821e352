"""Asks for a transaction timeout of its own, longer than it was told.

The mistake is to raise it to be rid of timeouts. It shows where no instance comes back to settle
what is open.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class TakesTheTimeItLikes(Plain):
    hello = Plain.hello | {"name": "broken/takes_the_time_it_likes"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        return super().open(start | {"transaction_timeout_ms": 3 * start["transaction_timeout_ms"]})


serve(TakesTheTimeItLikes())
