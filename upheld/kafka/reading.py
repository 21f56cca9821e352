"""All that the harness does on a broker by its own clients, in one object."""

from typing import Final

from upheld.kafka.admin import Admin
from upheld.kafka.canary import Canary
from upheld.kafka.reader import Reader

# A record ends the wait at once. An empty answer every 10 ms took a fifth of a broker's time.
_IDLE_MS: Final = 1_000


class Reading(Admin, Reader):
    """Administration and reading on the same clients, and the canary."""

    def __init__(self, bootstrap: str, client: dict[str, str]) -> None:
        super().__init__(bootstrap, client)
        self._canary: Canary | None = None

    def close(self) -> None:
        """Close every client."""
        super().close()
        if self._canary:
            self._canary.close()

    def canary(self, topic: str) -> None:
        """Create the canary's own topic and its clients, once a run."""
        self.create({topic: 1})
        self._canary = Canary(
            self.settings, self._consumer(committed=True, wait_ms=_IDLE_MS), topic
        )

    def canary_ms(self) -> int:
        """Return how many milliseconds the canary takes right now."""
        assert self._canary
        return self._canary.delay_ms()
