"""Works and emits while it stands by.

The mistake is to take warm for active. It shows in the cluster that writes before the switch.
"""

import threading
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class EmitsWhileItStandsBy(Plain):
    hello = Plain.hello | {"name": "broken/emits_while_it_stands_by"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        self.stands_by = start["standing_by"]
        self.ended = threading.Event()
        self.ready = super().open(start | {"standing_by": False})
        if self.stands_by:
            threading.Thread(target=super().run, args=(self.ended,), daemon=True).start()
        return {"type": "standing_by"} if self.stands_by else self.ready

    def activate(self, after: dict[str, int]) -> dict[str, Any]:
        return self.ready

    def run(self, stopping: threading.Event) -> None:
        if self.stands_by and stopping.wait():
            return self.ended.set()
        return super().run(stopping)


serve(EmitsWhileItStandsBy())
