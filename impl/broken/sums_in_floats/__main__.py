"""Keeps its sums as floats, which hold no odd integer above 2^53.

The mistake is to read JSON where every number is a double. It shows where amounts are large.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.generators.envelope_pb2 import Envelope
from upheld.impl.plain import Ledger, Plain


class Floating(Ledger):
    def apply(self, message: Message, envelope: Envelope) -> None:
        super().apply(message, envelope)
        for account in {posting.account for posting in envelope.postings}:
            row = self.rows[account]
            self.rows[account] = row._replace(balance_cents=int(float(row.balance_cents)))


class SumsInFloats(Plain):
    hello = Plain.hello | {"name": "broken/sums_in_floats"}
    programs = Plain.programs | {"ledger": Floating}


serve(SumsInFloats())
