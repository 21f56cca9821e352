"""Works and emits from the moment it is started, as if it were the only cluster.

Whoever forgets that warm and active are two things makes this mistake. It shows in who writes before the switch.
"""

import threading
from typing import Any

from streamgate.adapter import serve
from streamgate.impl.plain import Plain


class EmitsWhileItStandsBy(Plain):
    hello = Plain.hello | {"name": "broken/emits_while_it_stands_by"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        self.ready, self.standing_by = super().open(start | {"standing_by": False}), start.get("standing_by")
        if self.standing_by:
            threading.Thread(target=super().run, args=(threading.Event(),), daemon=True).start()
        return {"type": "standing_by"} if self.standing_by else self.ready

    def activate(self, after: dict[str, int]) -> dict[str, Any]:
        return self.ready

    def run(self, stopping: threading.Event) -> None:
        (stopping.wait if self.standing_by else lambda: super(EmitsWhileItStandsBy, self).run(stopping))()


serve(EmitsWhileItStandsBy())
