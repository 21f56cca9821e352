"""Makes a changelog topic for what waits, and says so.

The mistake is to leave a framework's defaults on. It shows on the broker, however well the topic is
declared.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.common.topics import make_topic
from upheld.impl.plain import Plain


class KeepsAChangelog(Plain):
    hello = Plain.hello | {"name": "broken/keeps_a_changelog", "programs": ["batcher"]}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready = super().open(start)
        topic = f"{start['application_id']}-changelog"
        make_topic(self.client, topic, 1)
        return ready | {"internal_topics": [topic]}


serve(KeepsAChangelog())
