"""Values made from a schema, for the keys of a pool that is made from it too."""

import random
from pathlib import Path
from typing import Any, Final

from upheld.errors import UsageProblem
from upheld.generators.samples import Drawn, Key, Source, key_bytes
from upheld.generators.schemas.likely import Likely
from upheld.generators.schemas.schema import Schema
from upheld.protocol.inputs import Input
from upheld.protocol.json_path import JsonPath

KEYS: Final = 64  # if a description does not say how many
TRIES: Final = 100  # of a value that has the fields that it needs
TRIES_A_KEY: Final = 5
BANK: Final = 500  # values that are made; a longer workload has each of them again


class Made(Source):
    """Values that a schema allows, each with a key of the pool in its place.

    Args:
        described: The description, which has a schema.
        schema: That schema.
        seed: Makes the keys, which are the same in every wave.
        wave: Makes the values, with the seed.
    """

    def __init__(self, described: Input, schema: Schema, seed: int, wave: int) -> None:
        assert described.schema_file is not None
        self._file: Path = described.schema_file
        self._schema = schema
        self._key = described.key
        self._unique = described.unique
        self._likely = Likely(random.Random(f"{seed}/{wave}/values"))
        self._bank: list[Any] = []
        self.keys = self._pool(described.keys or KEYS, seed)

    def draw(self, rng: random.Random, key: Key | None) -> Drawn:
        """Return a value with a key in its place."""
        said = ""
        for _ in range(TRIES):
            value = self._value(rng)
            if key is not None and self._key is not None:
                value = self._key.replaced(value, key.value)
                said = self._schema.problem(value)
            if not said:
                return Drawn(value)
        raise UsageProblem(f"{self._file}: no value of it may have another {self._key}: {said}.")

    def _value(self, rng: random.Random) -> Any:
        """Make a value; once there are many, draw one of them."""
        if len(self._bank) == BANK:
            return rng.choice(self._bank)
        self._bank.append(self._with_fields(self._likely))
        return self._bank[-1]

    def _pool(self, wanted: int, seed: int) -> list[Key]:
        """Return as many keys as are wanted, or fewer if the schema has no more."""
        if self._key is None:
            return []
        likely = Likely(random.Random(f"{seed}/keys/values"))
        found: dict[bytes | None, Key] = {}
        for _ in range(wanted * TRIES_A_KEY):
            if len(found) == wanted:
                break
            value = self._key.found(self._with_fields(likely))
            data = key_bytes(value)
            found.setdefault(data, Key(value, data))
        return list(found.values())

    def _with_fields(self, likely: Likely) -> Any:
        """Make a value that has the fields of the key and of what tells records apart."""
        lacking: JsonPath | None = None
        for _ in range(TRIES):
            value = self._schema.make(likely)
            lacking = next(filter(lambda path: _is_lacking(value, path), self._fields()), None)
            if lacking is None:
                return value
        option = "key" if lacking == self._key else "unique"
        raise UsageProblem(
            f"{self._file}: of {TRIES} values that were made, none has {lacking}, which `{option}` "
            "names, as a text or a whole number."
        )

    def _fields(self) -> list[JsonPath]:
        return [path for path in (self._key, self._unique) if path is not None]


def _is_lacking(value: Any, path: JsonPath) -> bool:
    return key_bytes(path.found(value)) is None
