"""Reports as lag what it has not read, whatever it has committed.

The mistake is to export the client's records-lag. It shows between two commits: work that a crash
gives back counts as done.
"""

from typing import Any

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Plain


class CountsWhatItHasRead(Plain):
    hello = Plain.hello | {"name": "broken/counts_what_it_has_read"}
    ahead = 0

    def process(self, messages: list[Message]) -> None:
        super().process(messages)
        self.ahead += len(messages)

    def commit(self) -> None:
        super().commit()
        self.ahead = 0

    def lag(self) -> dict[str, Any]:
        return {"type": "lagging", "offsets": max(0, super().lag()["offsets"] - self.ahead)}


serve(CountsWhatItHasRead())
