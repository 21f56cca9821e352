"""Gives up without a word to the broker, which has to wait for the transaction's timeout, and every
reader with it.

Whoever exits where an error is caught makes this mistake. It shows where the broker refuses an
output.
"""

from confluent_kafka import KafkaError

from upheld.adapter import serve
from upheld.impl.plain import Plain


class LeavesItsTransactionOpen(Plain):
    hello = Plain.hello | {"name": "broken/leaves_its_transaction_open"}

    def give_up(self, error: KafkaError) -> None:
        self.in_transaction = False
        super().give_up(error)


serve(LeavesItsTransactionOpen())
