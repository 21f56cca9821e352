"""Has another transactional id and another membership at every start.

The mistake is to make ids of the name of a host or a pod, in a design that is not made for several
instances. It shows when the application is deployed twice: neither notices.
"""

import uuid
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class DrawsItsIdsAnew(Plain):
    hello = Plain.hello | {"name": "broken/draws_its_ids_anew", "capabilities": ["reusable"]}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        return super().open(start | {"instance": uuid.uuid4().hex})


serve(DrawsItsIdsAnew())
