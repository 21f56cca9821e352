"""The clients that both administration and reading need."""

from collections.abc import Iterable
from typing import Final

from confluent_kafka.admin import AdminClient

from upheld.kafka.groups import Groups
from upheld.kafka.raw import RawClient

ANSWER_S: Final = 30.0

Settings = dict[str, str | int | float | bool]


class Clients:
    """An admin client, a raw one and a reader of groups; no design uses them."""

    def __init__(self, bootstrap: str, client: dict[str, str]) -> None:
        self.settings: Settings = {
            "bootstrap.servers": bootstrap,
            "retry.backoff.ms": 20,
            "log_level": 0,
            **client,
        }
        self._client = client
        self._connect()

    def _connect(self) -> None:
        self.admin = AdminClient(self.settings)
        self.raw = RawClient(str(self.settings["bootstrap.servers"]), self._client)
        self.groups = Groups(self.raw)

    def reconnect(self) -> None:
        """Leave all connections to a broker that was away, and make new ones."""
        self.raw.close()
        self._connect()

    def close(self) -> None:
        """Close every client."""
        self.raw.close()

    def forget(self, topics: Iterable[str]) -> None:
        """Forget what is known of topics that are deleted, or have more partitions now."""
