"""Keeps its state in a store under another name than the release before it.

The mistake is a name that was thought to be for people alone. It shows after a release: what the
store holds is not looked for, and the sums begin anew.
"""

from upheld.adapter import serve
from upheld.impl.plain import Ledger, Plain, Program


class Renamed(Ledger):
    def stages(self) -> dict[str, Program]:
        return {"account-balances": self}


class RenamesItsStore(Plain):
    hello = Plain.hello | {"name": "broken/renames_its_store", "version": "2"}
    programs = Plain.programs | {"ledger": Renamed}


serve(RenamesItsStore())
