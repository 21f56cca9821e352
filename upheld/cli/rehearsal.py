"""Models are tried with records of the samples, before a broker starts."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from upheld.generators.inputs import made_for
from upheld.generators.ledger import Send
from upheld.history.events import Record
from upheld.programs.interleavings import in_order_of_time
from upheld.programs.modelled import Answer, Steps, contract_of, model_of
from upheld.protocol.manifest import Manifest

REHEARSED: Final = 200  # records that a model is tried with before a broker starts


class Example(NamedTuple):
    """A record as a design's samples give it, and what its model answers."""

    record: Record
    outputs: list[Answer]


def examples(design: Manifest, count: int = REHEARSED, seed: int = 0) -> list[Example]:
    """Return what a design's model answers to records of its own samples.

    Several inputs have equal shares of them, and are read by their timestamps. A fold is tried in
    another order, too: each input after those behind it. There is nothing without a model.

    Raises:
        UsageProblem: The model fails, or cannot be judged by.
    """
    contract = contract_of(design)
    if contract is None or contract.model is None or design.application is None:
        return []
    inputs = design.application.input
    sends = made_for(inputs, seed, count=count, aborted_transactions=0)
    records = list(_records(sends, contract.reads))
    if contract.also_reads:
        other = Steps(model_of(contract))
        for record in sorted(records, key=lambda each: contract.inputs[::-1].index(each.topic)):
            list(other.answers(record))
        records = in_order_of_time(records)
    steps = Steps(model_of(contract))
    return [Example(record, list(steps.answers(record))) for record in records]


def _records(sends: Iterable[Send], topic: str) -> Iterator[Record]:
    """Go through records as topics would have them that are called as their roles."""
    ends = Counter[tuple[str, int]]()
    for send in sends:
        role = send.role or topic
        offset = ends[role, send.partition]
        ends[role, send.partition] += 1
        yield Record(
            role, send.partition, offset, send.timestamp_ms, send.key, send.value, send.headers
        )
