"""Keeps its sums as floating-point numbers, which hold no odd integer above 2^53.

Whoever reads JSON where every number is a double makes this mistake. It shows where amounts are
large.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.generators.envelope_pb2 import Envelope
from upheld.impl.plain import Ledger, Plain


class Floating(Ledger):
    def apply(self, message: Message, envelope: Envelope) -> None:
        super().apply(message, envelope)
        for account in {posting.account for posting in envelope.postings}:
            cents, postings, applied = self.rows[account]
            self.rows[account] = int(float(cents)), postings, applied


class SumsInFloats(Plain):
    hello = Plain.hello | {"name": "broken/sums_in_floats"}
    programs = Plain.programs | {"ledger": Floating}


serve(SumsInFloats())
