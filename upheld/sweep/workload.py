"""The tiny input of a sweep: waves of records, each of them a transaction."""

from functools import partial
from typing import Final

from upheld.generators.inputs import facts as input_facts
from upheld.generators.inputs import made_for
from upheld.generators.ledger import Send, facts, ledger
from upheld.protocol.subject import Subject
from upheld.trial.application import Input, Wave

ENTRIES: Final = 24  # of a wave
ACCOUNTS: Final = 8
BRANCHES: Final = 4
PARTITIONS: Final = 2


def prepare(state: Input, subject: Subject | None, seed: int) -> None:
    """Say what makes the waves of an application's input, each in two halves.

    Args:
        state: The input.
        subject: An application without an adapter, which has records of its own.
        seed: The same seed makes the same waves.
    """
    if subject:
        whole: Wave = partial(
            made_for,
            subject.input,
            seed,
            count=ENTRIES,
            keys=ACCOUNTS,
            partitions=PARTITIONS,
            aborted_transactions=1,
        )
        state.count = input_facts
    else:
        whole = partial(
            ledger,
            seed,
            entries=ENTRIES,
            accounts=ACCOUNTS,
            branches=BRANCHES,
            partitions=PARTITIONS,
            aborted_transactions=1,
        )
        state.count = facts
    state.wave = partial(half, whole)


def half(whole: Wave, *, wave: int) -> list[Send]:
    """Return half a wave.

    It has the records of the wave's aborted transaction, or those that follow. The committed
    records are in one piece, so that no design reads them in two batches.
    """
    return [send for send in whole(wave=wave // 2) if send.aborted == (wave % 2 == 0)]
