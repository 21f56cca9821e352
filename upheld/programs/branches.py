"""branches: `entries` (key = branch, value = Envelope) -> `balances` and `totals` (key = branch,
value = JSON), in two stages.

The first stage is the ledger's: `balances`, a row and a state for each account. What is new for an
account goes on to the second one: `totals`, ``{"branch", "balance_cents", "postings", "applied"}``,
a row and a state for each branch. Each row has an `applied` of its own, as the ledger's is; headers
and timestamp of a row are the ledger's too. Parameters: store and persistence_interval_ms; the mode
is at_least_once. A crash may come between the stages. What the first one has stored it discards
when it is replayed, so the second one never hears of it again, and has to be stored before it, or
both at once; and both before offsets are committed.
"""

from functools import partial

from upheld.history.events import Record
from upheld.programs.contract import Program
from upheld.programs.ledger import LEDGER, Diagnostician, lineage_of, model, stored_value, value_of
from upheld.programs.relay import Entry


def by_branch(record: Record, entry: Entry) -> dict[str, list[int]]:
    """All of an entry's postings are its branch's; an entry without any changes nothing."""
    amounts = [cents for _, cents in entry.postings]
    return {(record.key or b"").decode(errors="backslashreplace"): amounts} if amounts else {}


BRANCHES = Program(
    name="branches",
    contract=__doc__,
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
