"""Keeps what it has applied by the name of the topic, and asks nobody whether that is still the
same one.

Whoever never deletes a topic makes this mistake. It shows when one is made anew under its name:
what lies there now is taken for repeats as far as the old one went.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain


class KeepsPositionsByName(Plain):
    hello = Plain.hello | {"name": "broken/keeps_positions_by_name", "programs": ["ledger"]}

    def topic_ids(self) -> dict[str, bytes]:
        return {}


serve(KeepsPositionsByName())
