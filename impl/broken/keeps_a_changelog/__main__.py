"""Makes a changelog topic for what waits, and says so.

The mistake is to leave a framework's defaults on. It shows on the broker, however well the topic is
declared.
"""

from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from upheld.adapter import serve
from upheld.impl.plain import Plain


class KeepsAChangelog(Plain):
    hello = Plain.hello | {"name": "broken/keeps_a_changelog", "programs": ["batcher"]}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready = super().open(start)
        topic = f"{start['application_id']}-changelog"
        admin = AdminClient(self.client)
        for made in admin.create_topics([NewTopic(topic, 1)]).values():
            made.exception(10)
        return ready | {"internal_topics": [topic]}


serve(KeepsAChangelog())
