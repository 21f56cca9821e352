"""Stores its states as it has to, and starts without them.

The mistake is never to try a restart. It shows after one.
"""

from upheld.adapter import serve
from upheld.impl.plain import Ledger, Plain


class Forgetful(Ledger):
    def take_up(self, states: dict[str, str]) -> None:
        pass


class NeverReadsItsStore(Plain):
    hello = Plain.hello | {"name": "broken/never_reads_its_store"}
    programs = Plain.programs | {"ledger": Forgetful}


serve(NeverReadsItsStore())
