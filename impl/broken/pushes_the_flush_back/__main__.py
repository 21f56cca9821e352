"""Begins the interval anew with every event.

The mistake is to debounce instead of batching. It shows where events come steadily, less than an
interval apart.
"""

import time

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Batcher, Plain


class Debounced(Batcher):
    def take(self, message: Message) -> None:
        super().take(message)
        if (customer := (message.key() or b"").decode()) in self.since:
            self.since[customer] = time.monotonic()


class PushesTheFlushBack(Plain):
    hello = Plain.hello | {"name": "broken/pushes_the_flush_back", "programs": ["batcher"]}
    programs = Plain.programs | {"batcher": Debounced}


serve(PushesTheFlushBack())
