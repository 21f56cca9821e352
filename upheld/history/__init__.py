"""The history of one scenario, in memory and on disk.

It is appended to as events happen. The checks read it in memory, and the judge reads the file.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

from pydantic import ValidationError

from upheld.errors import UsageProblem
from upheld.history.events import EVENT, AnyEvent, Application, Begun, Ended, Event, Record
from upheld.masking import private

E = TypeVar("E", bound=Event)


class History:
    """Events in order.

    With a path, every event is also a line of that file, written as it happens.
    """

    def __init__(self, events: list[AnyEvent] | None = None, *, path: Path | None = None) -> None:
        self.events: list[AnyEvent] = []
        self._of: dict[type[Event], list[AnyEvent]] = defaultdict(list)  # the same, by kind
        # Results that the checks derive from the events, so that they derive them once.
        self.derived: dict[Hashable, object] = {}
        self._file = open(path, "w", encoding="utf-8", opener=private) if path else None  # noqa: SIM115
        for event in events or []:
            self.add(event)

    def add(self, event: AnyEvent) -> None:
        """Append one event."""
        self.events.append(event)
        self._of[type(event)].append(event)
        if self._file:
            self._file.write(event.line() + "\n")

    def add_all(self, records: Iterable[Record]) -> None:
        """Append records, in order."""
        known = len(self.events)
        self.events.extend(records)
        new = self.events[known:]
        self._of[Record].extend(new)
        if self._file:
            self._file.writelines([f"{record.line()}\n" for record in new])

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

    def count(self, *kinds: type[Event]) -> int:
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


def read(path: Path) -> History:
    """Read a recorded history back.

    Raises:
        UsageProblem: The file is missing, is no history, or was cut before its verdict.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageProblem(f"{path} cannot be read as a history: {reason}") from None
    if not text:
        raise UsageProblem(f"{path} is empty, so it is no history")
    lines = text.removesuffix("\n").split(
        "\n"
    )  # not splitlines: a name may hold other ends of lines
    events: list[AnyEvent] = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(EVENT.validate_json(line))
        except ValidationError as error:
            what = "is cut in its middle" if number == len(lines) else "is no event of a history"
            raise UsageProblem(
                f"{path}: line {number} {what}: {error.errors()[0]['msg']}"
            ) from None
    if not isinstance(events[0], Begun):
        raise UsageProblem(f"{path} is no history: it does not open with the event `begun`")
    if not isinstance(events[-1], Ended):
        raise UsageProblem(
            f"{path} was cut after line {len(lines)}: the event `ended` is missing, so it proves "
            "nothing"
        )
    return History(events)
