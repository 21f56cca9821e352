"""Takes a new client for every try, and lets go of none.

The mistake shows while the design's broker is away.
"""

import threading
import time
from typing import Any

from confluent_kafka import KafkaException, Producer

from upheld.adapter import serve
from upheld.impl.plain import Plain


class MakesClientsWithoutEnd(Plain):
    hello = Plain.hello | {"name": "broken/makes_clients_without_end", "capabilities": []}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        threading.Thread(target=self.ask, args=[start["bootstrap"]], daemon=True).start()
        return super().open(start)

    def ask(self, bootstrap: str) -> None:
        clients = [Producer({"bootstrap.servers": bootstrap})]
        while True:
            try:
                clients[-1].list_topics(timeout=0.02)
                time.sleep(0.02)
            except KafkaException:
                clients.append(Producer({"bootstrap.servers": bootstrap}))


serve(MakesClientsWithoutEnd())
