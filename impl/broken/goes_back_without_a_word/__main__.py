"""Recovers from a failure within its process, and tells nobody.

The mistake is to take a restart for what a supervisor does alone. Outputs come twice, and nothing
that happened to the design explains it. It shows where nothing happens.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class GoesBackWithoutAWord(Plain):
    hello = Plain.hello | {"name": "broken/goes_back_without_a_word", "programs": ["relay"]}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        self.has_failed = False
        return super().open(start)

    def commit(self) -> None:
        if self.has_failed or not self.dirty:
            super().commit()
            return
        self.has_failed = True
        self.await_outputs()
        self.drop()
        self.on_assign(self.consumer, self.committed)


serve(GoesBackWithoutAWord())
