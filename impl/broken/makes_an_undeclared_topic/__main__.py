"""Makes itself a changelog topic and declares it to no reader.

The mistake is to have internal topics on a cluster that creates them unasked. It shows on every
scenario.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.common.topics import make_topic
from upheld.impl.plain import Plain


class MakesAnUndeclaredTopic(Plain):
    hello = Plain.hello | {"name": "broken/makes_an_undeclared_topic"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready = super().open(start)
        if start["program"] == "ledger":
            make_topic(self.client, f"{start['application_id']}-changelog", 1)
        return ready


serve(MakesAnUndeclaredTopic())
