"""Goes on after any error of Kafka's, from where it was and with a new producer.

An error handler that is the same for every error is the mistake. It shows where the broker aborts
the transaction of a paused instance: the offsets are committed, and the outputs are gone.
"""

import threading
from typing import Any

from confluent_kafka import Consumer, KafkaException

from upheld.adapter import serve
from upheld.impl.plain import Plain


class GoesOnAfterAnAbort(Plain):
    hello = Plain.hello | {"name": "broken/goes_on_after_an_abort"}

    def work(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            try:
                super().work(stopping)
            except KafkaException:
                self.go_on()

    def on_revoke(self, *group: Any) -> None:
        self.go_on() if self.in_transaction else super().on_revoke(*group)

    def go_on(self) -> None:
        self.open_producer()
        self.producer.begin_transaction()
        self.commit_offsets(self.positions())
        self.in_transaction = self.dirty = False

    def membership(self) -> object:
        return Consumer(self.client | {"group.id": self.group}).consumer_group_metadata()


serve(GoesOnAfterAnAbort())
