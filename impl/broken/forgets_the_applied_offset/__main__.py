"""Restores every sum on a restart, and not the position of the last entry in it.

Whoever keeps positions beside the state, in memory or in another store, makes this mistake. It
shows where entries come again whose effect is in the restored sums: after a kill between output and
commit.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.generators.envelope_pb2 import Hop
from upheld.impl.plain import Ledger, Plain


class Forgetful(Ledger):
    def restore(self, rows: list[Message]) -> None:
        super().restore(rows)
        nothing = Hop(offset=-1)
        self.rows = {
            account: (cents, postings, nothing)
            for account, (cents, postings, _) in self.rows.items()
        }


class ForgetsTheAppliedOffset(Plain):
    hello = Plain.hello | {"name": "broken/forgets_the_applied_offset"}
    programs = Plain.programs | {"ledger": Forgetful}


serve(ForgetsTheAppliedOffset())
