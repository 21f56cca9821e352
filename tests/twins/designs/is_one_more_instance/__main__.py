"""Has other ids at every start, and may scale.

A second deployment is one more instance.
"""

import uuid
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class IsOneMoreInstance(Plain):
    hello = Plain.hello | {"name": "is_one_more_instance", "capabilities": ["reusable", "scale"]}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        return super().open(start | {"instance": uuid.uuid4().hex})


serve(IsOneMoreInstance())
