"""Gives up without a word to the broker.

The broker has to wait for the transaction's timeout, and every reader with it. The mistake is to
exit where an error is caught. It shows where the broker refuses an output.
"""

from typing import NoReturn

from confluent_kafka import KafkaError

from upheld.adapter import serve
from upheld.impl.plain import Plain


class LeavesItsTransactionOpen(Plain):
    hello = Plain.hello | {"name": "broken/leaves_its_transaction_open"}

    def give_up(self, error: KafkaError) -> NoReturn:
        self.in_transaction = False
        super().give_up(error)


serve(LeavesItsTransactionOpen())
