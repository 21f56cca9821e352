"""Stores the first state of an interval instead of the last.

It does hold back what changes within an interval. The mistake is to drop what comes too fast. It
shows when an account changes twice in an interval and then rests.
"""

from upheld.adapter import serve
from upheld.impl.plain import Ledger, Plain
from upheld.impl.plain.programs import OutputRecord


class FirstOfAnInterval(Ledger):
    def changed(self) -> list[OutputRecord]:
        before = dict(self.unsaved or {})
        rows = super().changed()
        if self.unsaved:
            self.unsaved |= before
        return rows


class StoresTheFirstOfAnInterval(Plain):
    hello = Plain.hello | {"name": "broken/stores_the_first_of_an_interval"}
    programs = Plain.programs | {"ledger": FirstOfAnInterval}


serve(StoresTheFirstOfAnInterval())
