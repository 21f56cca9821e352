"""Moves its input through a topic that is as wide as the input.

The mistake is to leave the number of partitions to the framework. It shows in the topics that the
broker has to host.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.common.topics import make_topic
from upheld.impl.plain import Plain


class RepartitionsAsWidelyAsItsInput(Plain):
    hello = Plain.hello | {"name": "broken/repartitions_as_widely_as_its_input"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready = super().open(start)
        name = f"{start['application_id']}-repartition"
        width = len(self.committed) // len(self.program.reads)
        make_topic(self.client, name, width)
        return ready | {"internal_topics": [name]}


serve(RepartitionsAsWidelyAsItsInput())
