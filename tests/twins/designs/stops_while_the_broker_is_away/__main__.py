"""Stops loudly when the broker has been away for two seconds.

The supervisor starts the design again.
"""

import os
import threading
import time
from typing import Any

from confluent_kafka import KafkaException, Producer

from upheld.adapter import serve
from upheld.impl.plain import Plain


class StopsWhileTheBrokerIsAway(Plain):
    hello = Plain.hello | {"name": "stops_while_the_broker_is_away", "capabilities": []}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        threading.Thread(target=self.ask, args=[start["bootstrap"]], daemon=True).start()
        return super().open(start)

    def ask(self, bootstrap: str) -> None:
        client = Producer({"bootstrap.servers": bootstrap})
        while True:
            try:
                client.list_topics(timeout=2)
                time.sleep(0.1)
            except KafkaException as error:
                said = f"the broker is away: {error}"
                self.say({"type": "failed", "kind": "storage", "message": said})
                os._exit(1)


serve(StopsWhileTheBrokerIsAway())
