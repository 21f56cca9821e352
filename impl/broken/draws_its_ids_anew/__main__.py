"""Has another transactional id and another membership at every start.

Whoever makes ids of a host's or a pod's name makes this mistake. It shows when it is deployed
twice: the two share the input.
"""

import uuid
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class DrawsItsIdsAnew(Plain):
    hello = Plain.hello | {"name": "broken/draws_its_ids_anew"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        return super().open(start | {"instance": uuid.uuid4().hex})


serve(DrawsItsIdsAnew())
