"""Sends its outputs outside of the transaction that commits its offsets.

The mistake is a second producer, for speed. It shows under exactly_once: readers of committed data
see each output at once, whatever becomes of the transaction.
"""

from confluent_kafka import Producer

from upheld.adapter import serve
from upheld.impl.plain import OutputRecord, Plain


class SendsOutsideOfItsTransaction(Plain):
    hello = Plain.hello | {"name": "broken/sends_outside_of_its_transaction"}

    def hand_over(self, rows: list[OutputRecord], topic: str) -> None:
        if rows:
            self.begin()
        inside = self.producer
        self.producer = Producer(self.client)
        super().hand_over(rows, topic)
        self.producer.flush(30)
        self.producer = inside


serve(SendsOutsideOfItsTransaction())
