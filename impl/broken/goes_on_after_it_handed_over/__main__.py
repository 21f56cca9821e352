"""Says that it has handed over, and goes on until its process is ended.

The mistake is to switch a flag that the threads at work never read. It shows in the cluster that
writes after the switch.
"""

import threading
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class GoesOnAfterItHandedOver(Plain):
    hello = Plain.hello | {"name": "broken/goes_on_after_it_handed_over"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        # An earlier start's thread closes whatever it finds open.
        for end in vars(self).get("let_go", ()):
            end()
        return super().open(start)

    def run(self, stopping: threading.Event) -> None:
        ended = threading.Event()
        work = threading.Thread(target=super().run, args=(ended,), daemon=True)
        work.start()
        self.let_go = (ended.set, work.join)
        stopping.wait()

    def deactivate(self) -> dict[str, Any]:
        through = {
            f"{place.topic}-{place.partition}": max(0, place.offset) for place in self.positions()
        }
        return {"type": "deactivated", "emitted_through": through}


serve(GoesOnAfterItHandedOver())
