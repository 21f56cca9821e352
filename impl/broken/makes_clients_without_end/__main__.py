"""Takes a new client for every try, and lets go of none.

The mistake shows while the design's broker is away.
"""

import threading
import time
from typing import Any

from confluent_kafka import KafkaError, Producer

from upheld.adapter import serve
from upheld.impl.plain import Plain


class MakesClientsWithoutEnd(Plain):
    hello = Plain.hello | {"name": "broken/makes_clients_without_end", "capabilities": []}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        threading.Thread(target=self.ask, args=[start["bootstrap"]], daemon=True).start()
        return super().open(start)

    def ask(self, bootstrap: str) -> None:
        clients = list[Producer]()

        def make_another(_: KafkaError | None = None) -> None:
            settings = {"bootstrap.servers": bootstrap, "error_cb": make_another}
            clients.append(Producer(settings))

        make_another()
        while True:
            clients[-1].poll(0.02)  # calls back if no broker can be reached, and not for a slow one
            time.sleep(0.02)


serve(MakesClientsWithoutEnd())
