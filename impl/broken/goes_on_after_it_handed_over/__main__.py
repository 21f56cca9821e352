"""Says that it has handed over, and goes on until its process is ended.

Whoever switches a flag that the threads at work never read makes this mistake. It shows in who writes after the switch.
"""

import threading
from typing import Any

from streamgate.adapter import serve
from streamgate.impl.plain import Plain


class GoesOnAfterItHandedOver(Plain):
    hello = Plain.hello | {"name": "broken/goes_on_after_it_handed_over"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        vars(self).setdefault("ended", threading.Event()).set()  # what an earlier start has left is no part of this one
        return super().open(start)

    def run(self, stopping: threading.Event) -> None:
        self.ended = threading.Event()
        threading.Thread(target=super().run, args=(self.ended,), daemon=True).start()
        stopping.wait()

    def deactivate(self) -> dict[str, Any]:
        through = {f"{place.topic}-{place.partition}": max(0, place.offset) for place in self.positions()}
        return {"type": "deactivated", "emitted_through": through}


serve(GoesOnAfterItHandedOver())
