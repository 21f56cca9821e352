"""Makes itself a changelog topic and declares it to no reader.

The mistake is to have internal topics on a cluster that creates them unasked. It shows on every
scenario.
"""

from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from upheld.adapter import serve
from upheld.impl.plain import Plain


class MakesAnUndeclaredTopic(Plain):
    hello = Plain.hello | {"name": "broken/makes_an_undeclared_topic"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready = super().open(start)
        if start["program"] == "ledger":
            admin = AdminClient(self.client)
            for made in admin.create_topics(
                [NewTopic(f"{start['application_id']}-changelog", 1)]
            ).values():
                made.exception(10)
        return ready


serve(MakesAnUndeclaredTopic())
