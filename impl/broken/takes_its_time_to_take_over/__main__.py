"""Gets warm when it is told to take over, and not before.

The mistake is to start the second cluster at the switch. It shows in how long readers wait.
"""

import time
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain

WARM_UP_S = 11.0


class TakesItsTimeToTakeOver(Plain):
    hello = Plain.hello | {"name": "broken/takes_its_time_to_take_over"}

    def activate(self, after: dict[str, int]) -> dict[str, Any]:
        time.sleep(WARM_UP_S)
        return super().activate(after)


serve(TakesItsTimeToTakeOver())
