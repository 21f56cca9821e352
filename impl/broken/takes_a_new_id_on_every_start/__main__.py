"""Takes a new transactional id on every start.

It sends its offsets as a stranger to the group, also when its partitions are taken. The mistake is
to make ids unique to be rid of fencing errors. It shows where a zombie has a transaction open.
"""

from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Plain


class TakesANewIdOnEveryStart(Plain):
    hello = Plain.hello | {"name": "broken/takes_a_new_id_on_every_start"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        answer = super().open(start | {"instance": uuid4().hex})
        self.stranger = Consumer(self.client | {"group.id": self.group})
        return answer

    def ends(self, partitions: list[TopicPartition]) -> dict[int, int]:
        return {place.partition: 0 for place in partitions}

    def on_revoke(self, *revoked: Any) -> None:
        self.commit()  # a stranger is not refused
        super().on_revoke(*revoked)

    def membership(self) -> object:
        self.producer.flush(10)  # outputs are out before offsets: a zombie has but to commit
        return self.stranger.consumer_group_metadata()


serve(TakesANewIdOnEveryStart())
