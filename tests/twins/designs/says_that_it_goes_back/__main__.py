"""Recovers from a failure within its process, as some engines do, and says so."""

from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class SaysThatItGoesBack(Plain):
    hello = Plain.hello | {"name": "says_that_it_goes_back", "programs": ["relay"]}

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
        self.notice("recovered")
        self.on_assign(self.consumer, self.committed)


serve(SaysThatItGoesBack())
