"""branches: `entries` -> `balances` and `totals`, in two stages.

The key of `entries` is the branch, and its value an Envelope. An entry lies where Kafka's default
partitioner (murmur2) puts its key; librdkafka's default partitioner is another one (CRC32). The key
of `totals` is the branch too, and its value JSON. The first stage is the ledger's: `balances`, a
row and a state for each account. A new row of an account goes on to the second stage: `totals`,
``{"branch", "balance_cents", "postings", "applied"}``, a row and a state for each branch.

Each row has an `applied` of its own, as the ledger's row has; headers and timestamp of a row are
the ledger's too. Parameters: store and persistence_interval_ms; the mode is at_least_once.

A crash may come between the stages. The first stage discards on replay the entries that it has
stored, so that the second stage never hears of them again. So the second stage has to be stored
before the first, or both at once; and both before offsets are committed.
"""

from functools import partial

from upheld.history.events import Record
from upheld.programs.contract import Program
from upheld.programs.ledger import LEDGER, Diagnostician, lineage_of, model, stored_value, value_of
from upheld.programs.relay import Entry


def by_branch(record: Record, entry: Entry) -> dict[str, list[int]]:
    """Return all postings of an entry under its branch.

    An entry without postings changes nothing.
    """
    amounts = [cents for _, cents in entry.postings]
    return {(record.key or b"").decode(errors="backslashreplace"): amounts} if amounts else {}


BRANCHES = Program(
    name="branches",
    reads="entries",
    writes="totals",
    conflates=True,
    parameters={"persistence_interval_ms": 500},
    model=partial(model, collections=by_branch),
    value_of=partial(value_of, key="branch"),
    lineage_of=lineage_of,
    diagnosis=partial(Diagnostician, collections=by_branch),
    stored_value=partial(stored_value, name="branch"),
    upstream=LEDGER,
)
