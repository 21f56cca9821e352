"""Restores every sum on a restart, but not the position of its last entry.

The mistake is to keep positions beside the state, in memory or in another store. It shows where
entries come again whose effect is in the restored sums: after a kill between output and commit.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.generators.envelope_pb2 import Hop
from upheld.impl.plain import Ledger, Plain


class Forgetful(Ledger):
    def restore(self, rows: list[Message]) -> None:
        super().restore(rows)
        nothing = Hop(offset=-1)
        self.rows = {account: row._replace(applied=nothing) for account, row in self.rows.items()}


class ForgetsTheAppliedOffset(Plain):
    hello = Plain.hello | {"name": "broken/forgets_the_applied_offset"}
    programs = Plain.programs | {"ledger": Forgetful}


serve(ForgetsTheAppliedOffset())
