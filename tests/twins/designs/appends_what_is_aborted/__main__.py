"""Takes a new transactional id on every start.

The design sends its offsets as a member of the group. No successor fences its producer. So it
goes on to append after a pause, and its transaction is aborted, because the group has another
generation.
"""

from typing import Any
from uuid import uuid4

from confluent_kafka import TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Plain


class AppendsWhatIsAborted(Plain):
    hello = Plain.hello | {"name": "appends_what_is_aborted", "programs": ["relay"]}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        return super().open(start | {"instance": uuid4().hex})

    def ends(self, partitions: list[TopicPartition]) -> dict[int, int]:
        return {place.partition: 0 for place in partitions}

    def membership(self) -> object:
        return self.consumer.consumer_group_metadata()


serve(AppendsWhatIsAborted())
