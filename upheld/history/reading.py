"""Recorded histories, read back from their files.

A file may be damaged, altered or hostile: whatever it holds, one sentence says what is wrong.
"""

from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from upheld.errors import UsageProblem
from upheld.history import History
from upheld.history.digest import digest_of
from upheld.history.events import EVENT, AnyEvent, Begun, Ended
from upheld.reading import read_unpacked

MOST_SHOWN: Final = 300  # characters


class Recording(NamedTuple):
    """A history that was read, and what its digest proves."""

    history: History
    sha256: str  # of all lines
    has_digest: bool  # which fits


def recording(path: Path) -> Recording:
    """Read a recorded history back, and compare it with its digest.

    Raises:
        UsageProblem: The file is missing, is no history, was cut before its verdict, or is not as
            it was written.
    """
    data = read_unpacked(path)
    if not data:
        raise UsageProblem(f"{path} is empty, so it is no history")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise UsageProblem(
            f"{path} cannot be read as a history: it is not UTF-8 text in line {number}"
        ) from None
    # Not splitlines: a name may hold other ends of lines.
    lines = data.removesuffix(b"\n").split(b"\n")
    events = [_event(path, lines, number) for number in range(1, len(lines) + 1)]
    if not isinstance(events[0], Begun):
        raise UsageProblem(f"{path} is no history: it does not open with the event `begun`")
    if not isinstance(events[-1], Ended):
        raise UsageProblem(
            f"{path} was cut after line {len(lines)}: the event `ended` is missing, so it proves "
            "nothing"
        )
    for number, event in enumerate(events[1:-1], 2):
        if isinstance(event, Begun | Ended):
            raise UsageProblem(
                f"{path}: line {number} is a second `{event.kind}`, so it is of another history"
            )
    found = digest_of(lines)
    if found.altered:
        raise UsageProblem(f"{path} was altered: {found.altered}")
    return Recording(History(events), found.sha256, found.is_stated)


def read(path: Path) -> History:
    """Read a recorded history back.

    Raises:
        UsageProblem: As `recording` does.
    """
    return recording(path).history


def _event(path: Path, lines: list[bytes], number: int) -> AnyEvent:
    try:
        return EVENT.validate_json(lines[number - 1])
    except (ValidationError, ValueError, RecursionError, OverflowError) as error:
        said = str(error)
        if isinstance(error, ValidationError):
            said = error.errors(include_input=False, include_url=False)[0]["msg"]
        what = "is cut in its middle" if number == len(lines) else "is no event of a history"
        raise UsageProblem(f"{path}: line {number} {what}: {printable(said)}") from None


def printable(said: str) -> str:
    """Return a text that may quote a file, in one printable line."""
    return "".join([c if c.isprintable() else ascii(c)[1:-1] for c in said[:MOST_SHOWN]])
