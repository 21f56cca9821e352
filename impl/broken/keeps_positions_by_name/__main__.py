"""Keeps what it has applied by the name of the topic.

The mistake is to expect that no topic is ever deleted. It shows when a topic is made anew under its
name. Records there are taken for repeats as far as the old topic went.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain


class KeepsPositionsByName(Plain):
    hello = Plain.hello | {"name": "broken/keeps_positions_by_name", "programs": ["ledger"]}

    def topic_ids(self) -> dict[str, bytes]:
        return {}


serve(KeepsPositionsByName())
