"""Keeps a sum for each kind of signal, and publishes the last one changed.

The mistake is to aggregate before merging. It shows where a robot has signals of more than one
kind.
"""

from typing import Any

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Plain
from upheld.impl.plain.programs import Pulse


class Alone(Pulse):
    def take(self, message: Message) -> None:
        role = str(message.topic()).rsplit("-", 1)[1]
        robot = bytes(message.key() or b"").decode()
        self.kinds: dict[tuple[str, str], Any] = getattr(self, "kinds", {})
        self.rows[robot] = self.kinds.setdefault(
            (robot, role), {"robot": robot, "name": None, "applied": {}}
        )
        super().take(message)


class SumsEachKindOfSignalAlone(Plain):
    hello = Plain.hello | {"name": "broken/sums_each_kind_of_signal_alone"}
    programs = Plain.programs | {"pulse": Alone}


serve(SumsEachKindOfSignalAlone())
