"""Samples of a user's input: a file of JSON lines, and what is drawn from it.

A line is a value, or a record such as `{"key": "a", "value": 1, "headers": {"h": "text"}}`. Lines
are records if the first one is an object with `key` and `value`, and nothing else but `headers`; a
description may say so itself. A record with a value of null is a tombstone. Empty lines are left
out.

A key is a text, which becomes UTF-8, or a whole number, which becomes its digits.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from upheld.errors import UsageProblem
from upheld.generators.formats import Encode
from upheld.protocol.inputs import Input, Lines
from upheld.protocol.json_path import MISSING, JsonPath
from upheld.reading import loaded, read_bytes

MOST_BYTES: Final = 64 << 20  # of a file of samples
MORE_KEYS_TRIES: Final = 20  # for each key that is made in the form of another
_RECORD: Final = frozenset({"key", "value", "headers"})
_SHOWN_CHARS: Final = 60
_DIGITS: Final = re.compile(r"\d+(?=\D*$)")  # the last ones of a text

Headers = tuple[tuple[str, bytes], ...]


class Key(NamedTuple):
    """A key of records.

    Attributes:
        value: The key as it stands in a value.
        data: The key as it stands in Kafka; None if records have none.
    """

    value: Any
    data: bytes | None


class Drawn(NamedTuple):
    """The value and the headers of one record.

    A value of None is a tombstone if `has_value` is not set.
    """

    value: Any
    headers: Headers = ()
    has_value: bool = True


class Sample(NamedTuple):
    """A line of a file of samples."""

    line: int
    key: Key
    drawn: Drawn


class Source:
    """The keys and values that records are drawn from.

    Attributes:
        keys: The pool of keys; empty if no record has a key.
    """

    keys: Sequence[Key]

    def draw(self, rng: random.Random, key: Key | None) -> Drawn:
        """Draw a value and its headers for a key of the pool."""
        raise NotImplementedError


class FieldKeyed(Source):
    """Samples whose key is a field of the value.

    A sample is drawn first, and its key is replaced by the one that is wanted. So a few samples
    make many records of each key.
    """

    def __init__(self, samples: Sequence[Sample], key: JsonPath, keys: Sequence[Key]) -> None:
        self._samples = samples
        self._key = key
        self.keys = keys

    def draw(self, rng: random.Random, key: Key | None) -> Drawn:
        """Draw a sample, with another key in its place."""
        drawn = rng.choice(self._samples).drawn
        assert key is not None
        return drawn._replace(value=self._key.replaced(drawn.value, key.value))


class OwnKeyed(Source):
    """Samples that have keys of their own, or none.

    A key is drawn first, and then one of its samples.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._of: dict[bytes | None, list[Drawn]] = {}
        keys: dict[bytes | None, Key] = {}
        for sample in samples:
            keys.setdefault(sample.key.data, sample.key)
            self._of.setdefault(sample.key.data, []).append(sample.drawn)
        self.keys = [] if keys.keys() == {None} else list(keys.values())

    def draw(self, rng: random.Random, key: Key | None) -> Drawn:
        """Draw a sample of a key."""
        return rng.choice(self._of[key.data if key else None])


def source_of(described: Input, encode: Encode) -> Source:
    """Return what the records of an input are drawn from.

    Args:
        described: The description.
        encode: What writes a value as bytes; each sample is tried.

    Raises:
        UsageProblem: The file of samples cannot be used.
    """
    assert described.sample is not None
    samples = read(described.sample, described.lines)
    _demand_encoded(described, samples, encode)
    if described.unique is not None:
        _demand_field(described.sample, samples, described.unique, "unique")
    if described.key is None:
        return OwnKeyed(samples)
    _demand_field(described.sample, samples, described.key, "key")
    found = [described.key.found(sample.drawn.value) for sample in samples]
    return FieldKeyed(samples, described.key, pool(found, described.keys))


def read(file: Path, lines: Lines | None = None) -> list[Sample]:
    """Return the samples of a file, each with its line.

    Args:
        file: The file of JSON lines.
        lines: What a line is; by default the first line says so.

    Raises:
        UsageProblem: The file cannot be read or has no sample, or a line is wrong.
    """
    found = list(_values(file))
    if not found:
        raise UsageProblem(f"{file} holds no sample: each line of it that is not empty is one.")
    first = found[0][1]
    is_record = isinstance(first, dict) and {"key", "value"} <= first.keys() <= _RECORD
    if lines == "records" or (lines is None and is_record):
        return [_record(file, line, value) for line, value in found]
    return [Sample(line, Key(None, None), Drawn(value)) for line, value in found]


def _values(file: Path) -> Iterator[tuple[int, Any]]:
    """Go through the values of a file, each with the number of its line."""
    data = read_bytes(file, most=MOST_BYTES).removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield number, _value(file, number, line)


def _value(file: Path, number: int, line: bytes) -> Any:
    try:
        value = loaded(line)
        json.dumps(value, allow_nan=False)
    except UnicodeDecodeError as error:
        said = f"it is not UTF-8 text (byte {error.start})"
    except ValueError as error:
        said = str(error).split("\n", 1)[0].rstrip(".")
    else:
        return value
    raise UsageProblem(f"{file}, line {number}: it is no JSON: {said}.")


def _record(file: Path, line: int, value: Any) -> Sample:
    """Read a line that is a record."""
    if not isinstance(value, dict) or "value" not in value or not value.keys() <= _RECORD:
        raise UsageProblem(
            f"{file}, line {line}: it is no record: an object with key, value and headers, of "
            "which `value` is always there."
        )
    key = value.get("key")
    if key is None:
        found = Key(None, None)
    elif (data := key_bytes(key)) is not None:
        found = Key(key, data)
    else:
        raise UsageProblem(f"{file}, line {line}: its key is {_short(key)}; {KINDS_OF_KEYS}.")
    has_value = value["value"] is not None
    drawn = Drawn(value["value"], _headers(file, line, value.get("headers")), has_value)
    return Sample(line, found, drawn)


def _headers(file: Path, line: int, headers: Any) -> Headers:
    """Read the headers of a record: an object of texts."""
    named = {} if headers is None else headers
    if not isinstance(named, dict) or not all(isinstance(each, str) for each in named.values()):
        raise UsageProblem(
            f"{file}, line {line}: its headers are {_short(headers)}; they are an object of texts."
        )
    return tuple((name, text.encode()) for name, text in named.items())


KINDS_OF_KEYS: Final = "a key is a text or a whole number"


def key_bytes(value: Any) -> bytes | None:
    """Return a key as it stands in Kafka; None if such a value is no key."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value).encode()
    return None


def _demand_encoded(described: Input, samples: Sequence[Sample], encode: Encode) -> None:
    """Refuse a value that the format of the input cannot hold."""
    for sample in samples:
        try:
            if sample.drawn.has_value:
                encode(sample.drawn.value)
        except ValueError as error:
            raise UsageProblem(
                f"{described.sample}, line {sample.line}: its value cannot be written as "
                f"{described.format}: {error}."
            ) from None


def _demand_field(file: Path, samples: Sequence[Sample], path: JsonPath, option: str) -> None:
    """Refuse samples in which a field is not there, or is of no use."""
    for sample in samples:
        found = path.found(sample.drawn.value)
        if found is MISSING:
            raise UsageProblem(
                f"{file}, line {sample.line}: it has no {path}, which `{option}` names."
            )
        if key_bytes(found) is None:
            raise UsageProblem(
                f"{file}, line {sample.line}: {path}, which `{option}` names, is {_short(found)}; "
                "it is to be a text or a whole number."
            )


def pool(found: Sequence[Any], wanted: int | None) -> list[Key]:
    """Return keys in the order in which they were found.

    If more are wanted than there are, others are made in their form. Each digit of a key becomes
    any digit; if that gives nothing new, a number takes the place of the last ones.

    Args:
        found: The keys of the samples, each as often as it was found.
        wanted: How many keys to return; None for all that were found.
    """
    keys: dict[bytes | None, Any] = {}
    for value in found:
        keys.setdefault(key_bytes(value), value)
    values = list(keys.values())[:wanted]
    if wanted is not None and len(values) < wanted:
        values += _more(values, wanted - len(values))
    return [Key(value, key_bytes(value)) for value in values]


def _more(values: Sequence[Any], wanted: int) -> list[Any]:
    """Make further keys in the form of those that there are."""
    rng = random.Random(wanted)
    known = {key_bytes(value) for value in values}
    made = list[Any]()
    tries = iter(range(wanted * MORE_KEYS_TRIES))
    numbers = count(1)
    while len(made) < wanted:
        like = values[len(made) % len(values)]
        new = _like(like, rng) if next(tries, None) is not None else numbered(like, next(numbers))
        if (data := key_bytes(new)) not in known:
            known.add(data)
            made.append(new)
    return made


def _like(value: Any, rng: random.Random) -> Any:
    """Return a value with other digits."""
    text = str(value)
    digits = [str(rng.randrange(10)) if each.isdecimal() else each for each in text]
    new = "".join(digits)
    if isinstance(value, int):
        return int(new)
    return new


def numbered(value: Any, number: int) -> Any:
    """Return a text or a whole number like another, which has a number in it.

    The number takes the place of a text's last digits, and has at least as many. Two numbers make
    two different values, whatever they are like.
    """
    if isinstance(value, int):
        return number
    digits = _DIGITS.search(value)
    if digits is None:
        return f"{value}-{number}"
    width = len(digits.group())
    return f"{value[: digits.start()]}{number:0{width}}{value[digits.end() :]}"


def _short(value: object) -> str:
    """Return a value as it may stand in a sentence, as JSON."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
