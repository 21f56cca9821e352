"""The history of one scenario, in memory and on disk.

It is appended to as events happen. The checks read it in memory, and the judge reads the file.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

from upheld.history.digest import PART_LINES, RunningDigest
from upheld.history.events import AnyEvent, Application, Begun, Ended, Event, Record
from upheld.masking import private

E = TypeVar("E", bound=Event | Record)


class History:
    """Events in order.

    With a path, every event is also a line of that file, written as it happens. The event `ended`
    closes the file's digest.
    """

    def __init__(self, events: list[AnyEvent] | None = None, *, path: Path | None = None) -> None:
        self.events: list[AnyEvent] = []
        self._of: dict[type, list[AnyEvent]] = defaultdict(list)  # the same, by kind
        # Results that the checks derive from the events, so that they derive them once.
        self.derived: dict[Hashable, object] = {}
        self.digest = RunningDigest()  # of the lines in the file
        self._file = open(path, "wb", opener=private) if path else None  # noqa: SIM115
        for event in events or []:
            self.add(event)

    def add(self, event: AnyEvent) -> None:
        """Append one event."""
        self.events.append(event)
        self._of[type(event)].append(event)
        if self._file:
            line = event.line().encode()
            if isinstance(event, Ended):
                line = self.digest.closed(line)
            self._write(line + b"\n")

    def add_all(self, records: Iterable[Record]) -> None:
        """Append records, in order."""
        known = len(self.events)
        self.events.extend(records)
        new = self.events[known:]
        self._of[Record].extend(new)
        if self._file:
            for begin in range(0, len(new), PART_LINES):
                lines = [f"{record.line()}\n" for record in new[begin : begin + PART_LINES]]
                self._write("".join(lines).encode(), len(lines))

    def _write(self, data: bytes, lines: int = 1) -> None:
        assert self._file
        self._file.write(data)
        self.digest.add(data, lines)

    def flush(self) -> None:
        """Make the file hold everything that was added."""
        if self._file:
            self._file.flush()

    def close(self) -> None:
        """Close the file.

        The events stay. Derived results go, because they hold this history, which is large.
        """
        self.derived.clear()
        if self._file:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def of(self, kind: type[E]) -> Iterator[E]:
        """Go through the events of one kind, in order."""
        return iter(cast(list[E], self._of[kind]))

    def count(self, *kinds: type[Event | Record]) -> int:
        """Count the events of these kinds.

        As long as the number stays, results that were derived from them stay right.
        """
        return sum(len(self._of[kind]) for kind in kinds)

    def upto(self, count: int) -> "History":
        """Return the history as it was when it had that many events."""
        return History(self.events[:count])

    @property
    def begun(self) -> Begun:
        """The event that opened the scenario."""
        return next(self.of(Begun))

    def application(self, name: str) -> Application:
        """Return the application of that name."""
        return next(application for application in self.of(Application) if application.name == name)
