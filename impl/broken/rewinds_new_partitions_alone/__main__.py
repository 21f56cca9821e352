"""Begins at the committed offset of new partitions alone.

The mistake is to read all state back, and to play the partitions that are kept from where they
stood. It shows in exactly_once where the broker assigns. An aborted transaction held records of the
kept partitions. They are in no state, and are never read again.
"""

from confluent_kafka import Consumer

from upheld.adapter import serve
from upheld.impl.plain import Place, Plain


class RewindsNewPartitionsAlone(Plain):
    hello = Plain.hello | {"name": "broken/rewinds_new_partitions_alone"}

    def begin_at_committed(self, consumer: Consumer) -> None:
        if not self.is_incremental:
            super().begin_at_committed(consumer)
            return
        kept = {Place(each.topic, each.partition) for each in consumer.assignment()}
        new = [each for each in self.committed if Place(each.topic, each.partition) not in kept]
        consumer.incremental_assign(new)


serve(RewindsNewPartitionsAlone())
