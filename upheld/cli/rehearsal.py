"""Models are tried with records of the samples, before a broker starts."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from upheld.generators.inputs import made
from upheld.generators.ledger import Send
from upheld.history.events import Record
from upheld.programs import Value
from upheld.programs.modelled import Steps, contract_of, model_of
from upheld.protocol.manifest import Manifest

REHEARSED: Final = 200  # records that a model is tried with before a broker starts


class Example(NamedTuple):
    """A record as a design's samples give it, and what its model answers."""

    record: Record
    outputs: list[tuple[bytes, Value]]


def examples(design: Manifest, count: int = REHEARSED, seed: int = 0) -> list[Example]:
    """Return what a design's model answers to records of its own samples.

    There is nothing without a model.

    Raises:
        UsageProblem: The model fails, or cannot be judged by.
    """
    contract = contract_of(design)
    if contract is None or contract.model is None or design.application is None:
        return []
    (described,) = design.application.input.values()
    steps = Steps(model_of(contract))
    size = {"count": count, "aborted_transactions": 0}
    return [
        Example(record, list(steps.after(record)))
        for record in _records(made(described.model_copy(update=size), seed), contract.reads)
    ]


def _records(sends: Iterable[Send], topic: str) -> Iterator[Record]:
    """Go through records as a topic would have them."""
    ends = Counter[int]()
    for send in sends:
        offset = ends[send.partition]
        ends[send.partition] += 1
        yield Record(
            topic, send.partition, offset, send.timestamp_ms, send.key, send.value, send.headers
        )
