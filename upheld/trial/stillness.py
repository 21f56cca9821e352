"""How long something has been as it is."""

from collections.abc import Callable


class Stillness:
    """Measures for how many milliseconds what is seen has not changed.

    If no offsets say how far outputs are, nothing but such a time ends a wait for them.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._since_ms = now_ms()
        self._seen: object = None

    def look(self, seen: object) -> int:
        """Take note of what is seen now, and return for how long it has been the same.

        Args:
            seen: What is compared with the last look, such as the ends of a topic.
        """
        now_ms = self._now_ms()
        if seen != self._seen:
            self._seen = seen
            self._since_ms = now_ms
        return now_ms - self._since_ms
