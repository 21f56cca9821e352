"""Reports its effects outside of Kafka only after the commit.

The mistake is to want no effect of an aborted transaction. It shows when a crash comes between
commit and effect.
"""

import time
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class TellsAfterTheCommit(Plain):
    hello = Plain.hello | {"name": "broken/tells_after_the_commit"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready = super().open(start)
        self.due = list[Any]()
        self.report = self.effects.report
        vars(self.effects)["report"] = lambda *said: self.due.append(said)
        return ready

    def commit(self) -> None:
        super().commit()
        time.sleep(0.2 if self.due else 0)
        while self.due:
            self.report(*self.due.pop(0))


serve(TellsAfterTheCommit())
