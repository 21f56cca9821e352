"""The history of one attempt, and the clock that times its events."""

import time
from collections.abc import Callable
from typing import Protocol

from upheld.history import History, events
from upheld.history.marks import Happening
from upheld.protocol.messages import Failed, Ready
from upheld.supervisor.instance import Noticed
from upheld.text import encodable
from upheld.threads import raise_failure

POLL_S = 0.02


class Named(Protocol):
    """An application, of which the recorder needs the name alone."""

    @property
    def name(self) -> str:
        """Return the name that the application has in the history."""


class Recorder:
    """The history of one attempt, and its clock.

    A deadline scales with `time_scale`. A promised tolerance never does.
    """

    def __init__(self, history: History, time_scale: float) -> None:
        self.history = history
        self.began = time.monotonic()
        self._time_scale = time_scale
        # The logs of the instances so far, with their bytes: whoever starts instances knows them.
        self.log_sizes: Callable[[], dict[str, int]] = dict
        # Application and instance -> its release, if there are two.
        self.releases: dict[tuple[str, str], events.Release] = {}

    @property
    def now_ms(self) -> int:
        """Return the milliseconds since the attempt began."""
        return self.ms_of(time.monotonic())

    def ms_of(self, monotonic_s: float) -> int:
        """Return a time of the monotonic clock in milliseconds since the attempt began."""
        return round((monotonic_s - self.began) * 1000)

    def wait(self, seconds: float, reached: Callable[[], bool]) -> bool:
        """Poll until a condition holds; return False if the scaled deadline passes first.

        The exception of a thread of the harness ends the wait.
        """
        deadline = time.monotonic() + seconds * self._time_scale
        while not reached():
            raise_failure()
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def mark(self, happening: Happening, text: str = "", /, **evidence: object) -> None:
        """Record that a fault happened where it was aimed, or what else had to happen.

        Args:
            happening: The code of what happened; it knows the family of its fault.
            text: The words for a person, if the usual ones lack a name.
            evidence: What was seen of it.
        """
        self.history.add(
            events.Mark(
                at_ms=self.now_ms,
                code=happening.family,
                happening=happening,
                fault=text or happening.text,
                evidence={name: encodable(value) for name, value in evidence.items()},
                logs=self.log_sizes(),
            )
        )

    def gave_up(self, application: Named, name: str, failed: Failed) -> None:
        """Record the loud stop of an instance: its words, and what it says in fields."""
        fields = {name: getattr(failed, name) for name in events.Failure.model_fields}
        self.history.add(
            events.Instance(
                at_ms=self.now_ms,
                application=application.name,
                name=name,
                event="failed",
                detail=f"{failed.kind}: {failed.message}",
                failure=events.Failure(**fields),
                release=self.releases.get((application.name, name)),
            )
        )

    def noticed(self, application: Named, name: str, noticed: Noticed) -> None:
        """Record what an instance said that it did by itself."""
        said = noticed.notice
        self.history.add(
            events.Notice(
                at_ms=self.ms_of(noticed.at_s),
                application=application.name,
                name=name,
                code=said.kind,
                topic=said.topic,
                partition=said.partition,
                begin=said.begin,
                end=said.end,
                message=said.message,
            )
        )

    def happened(
        self,
        application: Named,
        name: str,
        event: events.LifeEvent,
        detail: str = "",
        ready: Ready | None = None,
    ) -> None:
        """Record an event in the life of an instance."""
        self.history.add(
            events.Instance(
                at_ms=self.now_ms,
                application=application.name,
                name=name,
                event=event,
                detail=detail,
                consumer_group=ready.consumer_group if ready else None,
                internal_topics=ready.internal_topics if ready else (),
                table=ready.table if ready else None,
                release=self.releases.get((application.name, name)),
            )
        )
