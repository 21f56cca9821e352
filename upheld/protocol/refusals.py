"""The first mistake in a file that a user wrote, from the error of its model."""

from typing import Final, NamedTuple

from pydantic import ValidationError

SHOWN_CHARS: Final = 100  # of a value that is refused


class Wrong(NamedTuple):
    """A field that breaks a rule.

    Attributes:
        kind: The kind of the error, as pydantic names it.
        place: The names that lead to the field; empty if the fields contradict each other.
        said: What is wrong, in the words of the model.
        given: The value that was given.
    """

    kind: str
    place: tuple[str, ...]
    said: str
    given: object

    @property
    def field(self) -> str:
        """The field, with the tables that it stands in."""
        return ".".join(self.place)

    @property
    def must(self) -> str:
        """The mistake in words that may follow a colon."""
        return self.said[0].lower() + self.said[1:]


def first(error: ValidationError) -> Wrong:
    """Return the first mistake, or rather a field that does not exist.

    A field that is misspelt is missing too, and its name says more.
    """
    errors = error.errors(include_url=False)
    found = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    return Wrong(
        kind=found["type"],
        place=tuple(str(part)[:SHOWN_CHARS] for part in found["loc"] if part != "[key]"),
        said=found["msg"].removeprefix("Value error, "),
        given=found["input"],
    )


def short(value: object) -> str:
    """Return a value as it may stand in a sentence."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
