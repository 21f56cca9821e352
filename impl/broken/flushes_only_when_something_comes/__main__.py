"""Looks at the clock only when a record comes in.

The mistake is to let stream time drive a timer. It shows where an event is the last one for a
while.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Batcher, OutputRecord, Plain


class ByTraffic(Batcher):
    came = False

    def take(self, message: Message) -> None:
        super().take(message)
        self.came = True

    def changed(self) -> list[OutputRecord]:
        came = self.came
        self.came = False
        return super().changed() if came else []


class FlushesOnlyWhenSomethingComes(Plain):
    hello = Plain.hello | {
        "name": "broken/flushes_only_when_something_comes",
        "programs": ["batcher"],
    }
    programs = Plain.programs | {"batcher": ByTraffic}


serve(FlushesOnlyWhenSomethingComes())
