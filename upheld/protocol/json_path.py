"""Paths to one place in a JSON value.

Examples are `$.account` and `$.items[0]['unit price']`. They are the singular queries of RFC 9535:
names and indexes, from the root. A query that may find several places, with `*`, `..`, a slice or a
filter, is refused.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

Step = str | int
MISSING: Final = object()  # what stands at a place that a value does not have

_STEP: Final = re.compile(
    r"""\.(?P<name>[^\W\d][\w-]*)"""
    r"""|\[\s*(?P<index>0|-?[1-9]\d{0,8})\s*\]"""
    r"""|\[\s*'(?P<single>[^'\\]*)'\s*\]"""
    r"""|\[\s*"(?P<double>[^"\\]*)"\s*\]"""
)
_PLAIN: Final = re.compile(r"[^\W\d][\w-]*")  # a name that needs no quotes


def step(name: str) -> str:
    """Return the step of a path to a field of that name."""
    quote = '"' if "'" in name else "'"
    return f".{name}" if _PLAIN.fullmatch(name) else f"[{quote}{name}{quote}]"


@dataclass(frozen=True)
class JsonPath:
    """A path to one place.

    Attributes:
        text: The path as it was written.
        steps: The names and indexes from the root to the place.
    """

    text: str
    steps: tuple[Step, ...]

    @classmethod
    def read(cls, text: str) -> "JsonPath":
        """Read a path.

        Raises:
            ValueError: It is no path to one place.
        """
        if not text.startswith("$"):
            raise ValueError("a path begins with $, such as $.account")
        steps = list[Step]()
        at = 1
        while at < len(text):
            step = _STEP.match(text, at)
            if step is None:
                raise ValueError(
                    f"{text[at:]!r} in it leads to no single place; after $ there are steps such "
                    "as .name, ['a name'] or [0]"
                )
            found = next(each for each in step.groups() if each is not None)
            steps.append(int(found) if step["index"] is not None else found)
            at = step.end()
        if not steps:
            raise ValueError("$ is the whole value, and no field of it")
        return cls(text, tuple(steps))

    def __str__(self) -> str:
        return self.text

    def found(self, value: object) -> Any:
        """Return what stands at the place, or `MISSING`."""
        for step in self.steps:
            value = _inner(value, step)
        return value

    def replaced(self, value: object, new: object) -> Any:
        """Return a value with something else at the place.

        The value itself stays as it is.

        Raises:
            LookupError: The value does not have the place.
        """
        return _replaced(value, self.steps, new)

    def take_out(self, value: object) -> None:
        """Take the place out of a value, if it is there.

        In place of an item of a list is null then.
        """
        *way, last = self.steps
        inner: object = JsonPath("", tuple(way)).found(value)
        match inner, last:
            case dict(), str():
                inner.pop(last, None)
            case list(), int() if -len(inner) <= last < len(inner):
                inner[last] = None


def _inner(value: object, step: Step) -> Any:
    """Return what a step leads to, or `MISSING`."""
    match value, step:
        case dict(), str():
            return value.get(step, MISSING)
        case list(), int() if -len(value) <= step < len(value):
            return value[step]
    return MISSING


def _replaced(value: object, steps: tuple[Step, ...], new: object) -> Any:
    if not steps:
        return new
    step, *rest = steps
    inner = _inner(value, step)
    if inner is MISSING:
        raise LookupError(step)
    assert isinstance(value, dict | list)
    copied: Any = value.copy()
    copied[step] = _replaced(inner, tuple(rest), new)
    return copied
