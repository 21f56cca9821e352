"""Sends every event on by itself, at once.

The mistake is to take batching for an optimization. It shows where a batch is neither full nor old
enough.
"""

from upheld.adapter import serve
from upheld.impl.plain import Batcher, OutputRecord, Plain


class Alone(Batcher):
    def changed(self) -> list[OutputRecord]:
        return super().changed() + self.rest()


class SendsEveryEventAlone(Plain):
    hello = Plain.hello | {"name": "broken/sends_every_event_alone", "programs": ["batcher"]}
    programs = Plain.programs | {"batcher": Alone}


serve(SendsEveryEventAlone())
