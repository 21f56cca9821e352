"""Applies an entry posting by posting, each under the entry's one offset.

So the second posting on an account is taken for a duplicate. The mistake is to write the position
down after each posting. It shows where an entry touches one account twice.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.generators.envelope_pb2 import Envelope
from upheld.impl.plain import Ledger, Plain


class PostingByPosting(Ledger):
    def apply(self, message: Message, envelope: Envelope) -> None:
        for posting in envelope.postings:
            super().apply(
                message, Envelope(id=envelope.id, chain=envelope.chain, postings=[posting])
            )


class AppliesHalfACollection(Plain):
    hello = Plain.hello | {"name": "broken/applies_half_a_collection"}
    programs = Plain.programs | {"ledger": PostingByPosting}


serve(AppliesHalfACollection())
