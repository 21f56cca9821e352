"""Says that it is ready, and joins its group and reads its state then.

The mistake is to answer the readiness probe from the moment the process is up. It shows in how long
records have to wait after that.
"""

import threading
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain

LOADS_S = 4.0


class SaysReadyTooSoon(Plain):
    hello = Plain.hello | {"name": "broken/says_ready_too_soon"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        self.asked = start
        return {"consumer_group": f"{start['application_id']}-group"}

    def run(self, stopping: threading.Event) -> None:
        if not stopping.wait(LOADS_S):
            super().open(self.asked)
            super().run(stopping)


serve(SaysReadyTooSoon())
