"""Commits the offsets as soon as one output is acknowledged, and not all of them.

The mistake is to take a future of one send for all. It shows where the partitions of the outputs
have several leaders, and one of these is silent: the others acknowledge, and the offsets move on.
"""

from confluent_kafka import KafkaError, Message

from upheld.adapter import serve
from upheld.impl.plain import Plain

LOOK_S = 0.05


class TrustsTheFirstAcknowledgement(Plain):
    hello = Plain.hello | {
        "name": "broken/trusts_the_first_acknowledgement",
        "programs": ["ledger"],
    }

    acknowledged = False

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        super().delivered(error, message)
        self.acknowledged = True

    def await_outputs(self) -> None:
        if self.exactly_once:
            super().await_outputs()
            return
        while len(self.producer) and not self.acknowledged:
            self.producer.poll(LOOK_S)
        self.acknowledged = False


serve(TrustsTheFirstAcknowledgement())
