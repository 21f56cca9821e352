"""Takes the position where the other cluster ended for its last one, and begins behind it.

Whoever mixes up last offset and next offset makes this mistake. It shows in what nobody reads at a switch.
"""

from typing import Any

from streamgate.adapter import serve
from streamgate.impl.plain import Plain


class TakesOverOneTooLate(Plain):
    hello = Plain.hello | {"name": "broken/takes_over_one_too_late"}

    def activate(self, after: dict[str, int]) -> dict[str, Any]:
        return super().activate({place: offset + 1 for place, offset in after.items()})


serve(TakesOverOneTooLate())
