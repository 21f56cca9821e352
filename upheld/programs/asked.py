"""The parts of an answer by HTTP that are compared with an output of the same key.

The answer has to be the output, or some of its places have to be places of the output. Fields that
are not compared among outputs are not compared here, and an answer need not have them.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from upheld.history.events import Contract
from upheld.programs.contract import Value
from upheld.protocol.json_path import MISSING, JsonPath
from upheld.protocol.subject import WHOLE
from upheld.reading import loaded

SHOWN: Final = 200  # characters of a text that is no JSON
Side = Literal["answer", "output"]


@dataclass(frozen=True)
class Compared:
    """The parts of an answer and of an output that are compared.

    Attributes:
        format: How both are read, json or bytes.
        ignored: The fields that are taken out of both, if they are compared as a whole.
        fields: Place in an answer -> place in the output; nothing if they are compared as a whole.
    """

    format: str
    ignored: tuple[JsonPath, ...]
    fields: Mapping[str, str]

    @classmethod
    def of(cls, contract: Contract, unstable: Iterable[str] = ()) -> "Compared":
        """Return what is compared by a contract, without the unstable fields."""
        ignored = dict.fromkeys((*contract.ignore, *unstable))
        fields = {
            place: output
            for place, output in (contract.asked or {}).items()
            if output not in ignored
        }
        return cls(contract.format, tuple(map(JsonPath.read, ignored)), fields)

    def of_answer(self, said: str | None) -> Value | None:
        """Return what of an answer is compared; None if it says that there is no value."""
        return self._value(said, "answer")

    def of_output(self, value: bytes | None) -> Value | None:
        """Return what of an output is compared; None for a tombstone."""
        text = None if value is None else value.decode(errors="backslashreplace")
        return self._value(text, "output")

    def _value(self, said: str | None, side: Side) -> Value | None:
        if said is None:
            return None
        if self.format == "bytes":
            return (said,)
        try:
            value = loaded(said.encode())
        except ValueError:
            return (f"no JSON: {said[:SHOWN]}",)
        if value is None:
            return None
        if self.fields:
            value = [_field(value, places, side) for places in self.fields.items()]
        else:
            for path in self.ignored:
                path.take_out(value)
        return (json.dumps(value, sort_keys=True, ensure_ascii=False),)


def _field(value: object, places: tuple[str, str], side: Side) -> list[object]:
    """Return what stands at a place that is compared; nothing if it is missing."""
    place = places[0] if side == "answer" else places[1]
    found = value if place == WHOLE else JsonPath.read(place).found(value)
    return [] if found is MISSING else [found]
