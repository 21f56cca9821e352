"""The interface of all schemas: make values, check them, and write them as bytes."""

import json
from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple

from upheld import extras
from upheld.errors import MachineProblem
from upheld.generators.schemas.likely import Likely

MOST_BYTES: Final = 4 << 20  # of a file with a schema
MOST_LEVELS: Final = 5  # below which nothing optional is made
EXTRA: Final = "schemas"


def compact(value: Any) -> bytes:
    """Return a value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


class Registered(NamedTuple):
    """A schema as a registry takes it.

    Attributes:
        kind: AVRO, JSON or PROTOBUF.
        text: The schema.
        imports: The name of each file that it imports, and that file as a registry takes it.
    """

    kind: str
    text: str
    imports: tuple[tuple[str, "Registered"], ...] = ()


class Schema(ABC):
    """A schema of a user, which has been found valid.

    Values are those of JSON. Bytes of Avro are texts with a character for each byte, as in Avro's
    own JSON. Bytes of Protobuf are base64, as in Protobuf's own JSON.

    Attributes:
        prefix: What stands before a value on the wire, after the id of the schema.
    """

    prefix: bytes = b""

    @abstractmethod
    def make(self, likely: Likely) -> Any:
        """Return a value that the schema allows.

        Raises:
            UsageProblem: None was found.
        """

    @abstractmethod
    def problem(self, value: Any) -> str:
        """Return why the schema does not allow a value, with the place; empty if it does."""

    @abstractmethod
    def encode(self, value: Any) -> bytes:
        """Return a value as bytes.

        Raises:
            ValueError: The schema does not allow it.
        """

    @abstractmethod
    def decode(self, data: bytes) -> Any:
        """Return a value that `encode` has written."""

    @property
    @abstractmethod
    def registered(self) -> Registered:
        """The schema as a registry takes it."""


def demand_extra(purpose: str) -> None:
    """Refuse what this machine lacks the libraries for.

    Raises:
        MachineProblem: The extra is not installed.
    """
    if lack := extras.lack(EXTRA):
        raise MachineProblem(f"{purpose} cannot be used: {lack}.")
