"""Calls an entry a duplicate by the position it is read from.

That position is new for every repeat of a relay upstream. The mistake is to take Kafka's offset for
the entry's identity. It shows where a relay upstream repeats.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.generators.envelope_pb2 import Envelope, Hop
from upheld.impl.plain import Ledger, Plain


class ByReadPosition(Ledger):
    def apply(self, message: Message, envelope: Envelope) -> None:
        # An application's own.
        done = self.__dict__.setdefault("done", dict[int, int]())
        hop = envelope.chain[-1]
        self.new = hop.offset > done.get(hop.partition, -1)
        super().apply(message, envelope)
        done[hop.partition] = hop.offset

    def is_duplicate(self, first: Hop, applied: Hop) -> bool:
        return not self.new


class TracksTheTopicItReads(Plain):
    hello = Plain.hello | {"name": "broken/tracks_the_topic_it_reads"}
    programs = Plain.programs | {"ledger": ByReadPosition}


serve(TracksTheTopicItReads())
