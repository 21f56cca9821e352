"""Leaves postings of zero out under exactly_once, not under at_least_once.

The mistake is to write a second code path for the stronger guarantee. It shows where both run side
by side.
"""

from typing import Any

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.generators.envelope_pb2 import Envelope
from upheld.impl.plain import Ledger, Plain


class SkipsZeros(Ledger):
    def apply(self, message: Message, envelope: Envelope) -> None:
        counted = [posting for posting in envelope.postings if posting.amount_cents]
        super().apply(message, Envelope(id=envelope.id, chain=envelope.chain, postings=counted))


class SkipsZerosUnderExactlyOnce(Plain):
    hello = Plain.hello | {"name": "broken/skips_zeros_under_exactly_once"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ledger = SkipsZeros if start["mode"] == "exactly_once" else Ledger
        self.programs = Plain.programs | {"ledger": ledger}
        return super().open(start)


serve(SkipsZerosUnderExactlyOnce())
