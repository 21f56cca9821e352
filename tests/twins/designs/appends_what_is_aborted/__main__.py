"""Takes a new transactional id on every start.

No successor fences its producer. So the design goes on after a pause, and appends what it commits
when its partitions are revoked. It sends its offsets as a member of the group, which has another
generation then. So that transaction is aborted.
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

    def on_revoke(self, *revoked: Any) -> None:
        self.commit()
        super().on_revoke(*revoked)

    def membership(self) -> object:
        return self.consumer.consumer_group_metadata()


serve(AppendsWhatIsAborted())
