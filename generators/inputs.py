"""The records of an input that a user describes, by samples or by a schema.

Keys are drawn by Zipf's law, with the exponent that the description names, and each record lies
where Kafka's default partitioner puts its key. Without keys, the partitions take turns. Which keys
are the frequent ones hangs on the seed.

Records differ by the field that `unique` names. Without one, two records may be equal, as those of
a real topic may, and only their places tell them apart.

If aborted transactions are asked for, they stand between the records that count, and the last one
ends every partition. One seed makes the same bytes in any process.
"""

import random
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from upheld.errors import UsageProblem
from upheld.generators.formats import Encode, format_of, schema_of
from upheld.generators.ledger import EPOCH_MS, WAVE_MS, Send, drawn, zipf
from upheld.generators.placement import partition_of
from upheld.generators.samples import Drawn, Key, Source, numbered, source_of
from upheld.generators.schemas.made import Made
from upheld.protocol.inputs import Input
from upheld.protocol.json_path import JsonPath

MOST_OF_A_WAVE: Final = 10_000_000  # records, so that no two waves number one alike
MOST_OF_A_PARTITION: Final = 2  # records of an aborted transaction


def made(
    described: Input, seed: int, *, wave: int = 0, schema_id: int | None = None
) -> tuple[Send, ...]:
    """Make the records of an input, in the order in which they are sent.

    Args:
        described: The description; its `count` is that of the records that count.
        seed: The same description and seed make the same bytes.
        wave: Above 0 for what arrives later: other records, of the same keys.
        schema_id: The id that a registry has given the schema; needed if the description has a
            `registry`.

    Raises:
        UsageProblem: The samples or the schema cannot be used.
        MachineProblem: A library for the schema is not installed.
        ValueError: The description has a registry, and there is no id.
    """
    if described.registry and schema_id is None:
        raise ValueError("an input with a registry needs the id of its schema")
    schema = schema_of(described)
    form = format_of(described, schema, schema_id)
    if described.sample is None:
        assert schema is not None
        source: Source = Made(described, schema, seed, wave)
    else:
        source = source_of(described, form.encode)
    mint = _Mint(described, source, form.encode, seed, wave)
    return tuple(mint.records())


def made_for(
    inputs: Mapping[str, Input], seed: int, *, wave: int = 0, **size: int
) -> tuple[Send, ...]:
    """Make the records of all inputs of an application, one input after the other.

    Several inputs have equal shares, and no two of their records are numbered alike.

    Args:
        inputs: The descriptions, by the roles of their topics.
        seed: As for `made`.
        wave: As for `made`.
        size: What is asked of all inputs together: `count`, and what else is another one than
            described. `keys` is left out where an input has none.

    Raises:
        UsageProblem: As for `made`.
        MachineProblem: As for `made`.
    """
    sends = list[Send]()
    share, rest = divmod(size.pop("count"), len(inputs))
    transactions = 0
    for number, (role, described) in enumerate(inputs.items()):
        own = {name: each for name, each in size.items() if name != "keys" or described.key}
        own["count"] = share + (number < rest)
        if not own["count"]:
            continue
        more = made(described.model_copy(update=own), seed, wave=wave * len(inputs) + number)
        sends += [
            send._replace(
                role=role,
                transaction=None if send.transaction is None else send.transaction + transactions,
            )
            for send in more
        ]
        transactions += own.get("aborted_transactions", described.aborted_transactions)
    return tuple(sends)


class _Mint:
    """Makes records one after the other; keeps the clock and their number."""

    def __init__(
        self, described: Input, source: Source, encode: Encode, seed: int, wave: int
    ) -> None:
        self._described = described
        self._source = source
        self._encode = encode
        self._rng = random.Random(f"{seed}/{wave}")
        self._numbers = iter(range(wave * MOST_OF_A_WAVE, (wave + 1) * MOST_OF_A_WAVE))
        self._first = wave * MOST_OF_A_WAVE
        self._begin_ms = EPOCH_MS + seed % 500_000 * 60_000 + wave * WAVE_MS
        self._keys = list(self._source.keys)
        random.Random(f"{seed}/keys").shuffle(self._keys)
        self._weights = zipf(len(self._keys), described.skew)
        self._of: defaultdict[int, list[Key]] = defaultdict(list)
        for key in self._keys:
            if key.data is not None:
                self._of[partition_of(key.data, described.partitions)].append(key)

    def records(self) -> Iterator[Send]:
        """Go through the records, with aborted ones in between and at the end."""
        count = self._described.count
        aborted = self._described.aborted_transactions
        stations = Counter(self._rng.randrange(count) for _ in range(aborted - 1))
        transactions = iter(range(aborted))
        for number in range(count):
            for _ in range(stations[number]):
                yield from self._transaction(next(transactions))
            yield self._record(self._key())
        for transaction in transactions:
            yield from self._transaction(transaction)

    def _key(self) -> Key | None:
        """Draw a key by Zipf's law; there may be none."""
        return self._keys[drawn(self._rng, self._weights)] if self._keys else None

    def _transaction(self, transaction: int) -> Iterator[Send]:
        """Make the records of an aborted transaction: one or two of each partition in use."""
        for partition in range(self._described.partitions):
            for _ in range(self._rng.randint(1, MOST_OF_A_PARTITION)):
                if not self._keys:
                    yield self._record(None, transaction)._replace(partition=partition)
                elif of := self._of[partition]:
                    yield self._record(self._rng.choice(of), transaction)

    def _record(self, key: Key | None, transaction: int | None = None) -> Send:
        """Make the next record, of a key."""
        number = next(self._numbers)
        found = self._source.draw(self._rng, key)
        if self._described.unique is not None:
            found = self._told_apart(found, self._described.unique, number)
        data = key.data if key else None
        partitions = self._described.partitions
        return Send(
            key=data,
            value=self._written(found.value) if found.has_value else None,
            headers=found.headers,
            timestamp_ms=self._begin_ms + self._elapsed_ms(number),
            partition=number % partitions if data is None else partition_of(data, partitions),
            transaction=transaction,
        )

    def _written(self, value: Any) -> bytes:
        """Return a value as bytes; another key or id may be more than its format can hold."""
        try:
            return self._encode(value)
        except ValueError as error:
            raise UsageProblem(
                f"A value for {self._described.topic}, with another key or id in its place, cannot "
                f"be written as {self._described.format}: {error}."
            ) from None

    def _elapsed_ms(self, number: int) -> int:
        return int((number - self._first) * 1_000 / self._described.rate)

    def _told_apart(self, found: Drawn, unique: JsonPath, number: int) -> Drawn:
        """Return a value with another text or number in the field that tells records apart."""
        like = unique.found(found.value)
        is_uuid = isinstance(like, str) and _is_uuid(like)
        new = str(self._uuid()) if is_uuid else numbered(like, number + 1)
        return found._replace(value=unique.replaced(found.value, new))

    def _uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._rng.randbytes(16), version=4)


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def facts(sends: Sequence[Send]) -> dict[str, int]:
    """Count the facts of an input that a report states."""
    counted = [send for send in sends if not send.aborted]
    return {
        "records": len(sends),
        "entries": len(counted),
        "keys": len({send.key for send in counted}),
        "partitions": len({send.partition for send in counted}),
        "aborted": len(sends) - len(counted),
    }
