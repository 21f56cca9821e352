"""Compares offsets alone.

So entries of another topic, partition or topic id count as old ones. The mistake is to store an
offset without its place. It shows where the first hop moves.
"""

from upheld.adapter import serve
from upheld.generators.envelope_pb2 import Hop
from upheld.impl.plain import Ledger, Plain


class OffsetAlone(Ledger):
    def is_duplicate(self, first: Hop, applied: Hop) -> bool:
        return first.offset <= applied.offset


class KeepsTheOldOffset(Plain):
    hello = Plain.hello | {"name": "broken/keeps_the_old_offset"}
    programs = Plain.programs | {"ledger": OffsetAlone}


serve(KeepsTheOldOffset())
