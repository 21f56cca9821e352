"""Aborts a transaction if its offsets are not taken at once, and goes on.

The mistake is to take an abort for the end of the matter. The records that were read for it have to
be read again. It shows where a coordinator is busy for a moment.
"""

import time

from upheld.adapter import serve
from upheld.impl.plain import Plain

# Its client tries again after half a second.
NAME = "broken/passes_over_what_it_aborts"
PATIENCE_S = 0.4


class PassesOverWhatItAborts(Plain):
    hello = Plain.hello | {"name": NAME, "programs": ["relay"], "modes": ["exactly_once"]}

    def commit(self) -> None:
        began = time.monotonic()
        if self.dirty:
            self.producer.send_offsets_to_transaction(self.positions(), self.membership(), 10)
        if not (is_late := time.monotonic() - began > PATIENCE_S) and self.dirty:
            self.producer.commit_transaction(30)
        self.in_transaction = False
        self.dirty = False
        if is_late:
            self.producer.abort_transaction(30)
            self.begin()


serve(PassesOverWhatItAborts())
