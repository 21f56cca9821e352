"""Looks names up in a second stage, and keeps a topic for each stage.

The mistake is to join after aggregating: the join has a store, and the store has a topic. It shows
in the topics that the broker hosts.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.common.topics import make_topic
from upheld.impl.plain import Plain


class KeepsATopicForTheLookup(Plain):
    hello = Plain.hello | {"name": "broken/keeps_a_topic_for_the_lookup"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready = super().open(start)
        names = [f"{start['application_id']}-{stage}" for stage in ("aggregate", "lookup")]
        for name in names:
            make_topic(self.client, name, 1)
        return ready | {"internal_topics": names}


serve(KeepsATopicForTheLookup())
