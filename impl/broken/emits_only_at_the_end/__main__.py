"""Keeps every balance to itself until it is stopped.

It commits its input all the while. The mistake is to turn a batch job into a stream. It shows where
the input pauses and the outputs are due.
"""

import threading

from upheld.adapter import serve
from upheld.impl.plain import Ledger, OutputRecord, Plain


class AtTheEnd(Ledger):
    def changed(self) -> list[OutputRecord]:
        return []


class EmitsOnlyAtTheEnd(Plain):
    hello = Plain.hello | {"name": "broken/emits_only_at_the_end", "modes": ["at_least_once"]}
    programs = Plain.programs | {"ledger": AtTheEnd}

    def run(self, stopping: threading.Event) -> None:
        super().run(stopping)
        self.send(Ledger.changed(self.program) if isinstance(self.program, Ledger) else [])
        self.producer.flush(30)


serve(EmitsOnlyAtTheEnd())
