"""Holds back what changes within an interval, and keeps the first state of it instead of the last.

Whoever drops what comes too fast makes this mistake. It shows when an account changes twice in an
interval and then rests.
"""

from upheld.adapter import serve
from upheld.impl.plain import Ledger, Plain
from upheld.impl.plain.programs import Row


class FirstOfAnInterval(Ledger):
    def changed(self) -> list[Row]:
        before, rows = dict(self.unsaved or {}), super().changed()
        if self.unsaved:
            self.unsaved |= before
        return rows


class StoresTheFirstOfAnInterval(Plain):
    hello = Plain.hello | {"name": "broken/stores_the_first_of_an_interval"}
    programs = Plain.programs | {"ledger": FirstOfAnInterval}


serve(StoresTheFirstOfAnInterval())
