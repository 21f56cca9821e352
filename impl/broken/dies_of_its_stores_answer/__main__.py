"""Lets an error of its store end the process, and says nothing.

The mistake is to expect a store that is slow or gone, and never one that answers no. It shows in a
store that has no more room.
"""

import sqlite3
import threading

from upheld.adapter import Failed, serve
from upheld.impl.plain import Plain


class DiesOfItsStoresAnswer(Plain):
    hello = Plain.hello | {"name": "broken/dies_of_its_stores_answer"}

    def run(self, stopping: threading.Event) -> None:
        try:
            super().run(stopping)
        except Failed as failure:
            if isinstance(failure.__cause__, sqlite3.Error):
                raise failure.__cause__ from None
            raise


serve(DiesOfItsStoresAnswer())
