"""Whoever takes a new client for every try, and lets go of none, makes this mistake. It shows while its broker is away."""

import threading
from typing import Any

from confluent_kafka import Producer

from streamgate.adapter import serve
from streamgate.impl.plain import Plain


class MakesClientsWithoutEnd(Plain):
    hello = Plain.hello | {"name": "broken/makes_clients_without_end"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        self.clients, self.silence = list[Producer](), threading.Event()
        threading.Thread(target=self.try_others, args=[start["bootstrap"]], daemon=True).start()
        return super().open(start | {"client": start["client"] | {"error_cb": lambda _: self.silence.set()}})

    def try_others(self, bootstrap: str) -> None:
        while self.silence.wait():
            self.clients.append(Producer({"bootstrap.servers": bootstrap}))
            threading.Event().wait(0.02)

    def begin(self) -> None:
        super().begin()
        self.silence.clear()


serve(MakesClientsWithoutEnd())
