"""Sends every event on by itself, at once.

Whoever takes batching for an optimization makes this mistake. It shows where a batch is neither
full nor old enough.
"""

from upheld.adapter import serve
from upheld.impl.plain import Batcher, Plain, Row


class Alone(Batcher):
    def changed(self) -> list[Row]:
        return super().changed() + self.rest()


class SendsEveryEventAlone(Plain):
    hello = Plain.hello | {"name": "broken/sends_every_event_alone", "programs": ["batcher"]}
    programs = {"batcher": Alone}  # noqa: RUF012


serve(SendsEveryEventAlone())
