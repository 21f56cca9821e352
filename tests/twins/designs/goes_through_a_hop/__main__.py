"""Commits its input with records of its own topic, and copies these to the output."""

from threading import Thread
from typing import Any

from confluent_kafka import Consumer, Producer

from upheld.adapter import serve
from upheld.impl.common.topics import make_topic
from upheld.impl.plain import Plain


class GoesThroughAHop(Plain):
    hello = Plain.hello | {"name": "goes_through_a_hop", "programs": ["relay"], "capabilities": []}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        hop = f"{start['application_id']}-hop"
        make_topic({"bootstrap.servers": start["bootstrap"], **start["client"]}, hop, 4)
        ready = super().open(start | {"topics": start["topics"] | {"output": hop}})
        Thread(target=self.copy, args=(hop, start["topics"]["output"]), daemon=True).start()
        return ready | {"internal_topics": [hop]}

    def copy(self, hop: str, output: str) -> None:
        earliest = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = Consumer(self.client | earliest | {"group.id": hop, "group.instance.id": hop})
        consumer.subscribe([hop])
        producer = Producer(self.client | {"transactional.id": hop})
        producer.init_transactions(30)
        while True:
            producer.begin_transaction()
            for each in consumer.consume(500, 0.1):
                at = {"partition": each.partition(), "timestamp": each.timestamp()[1]}
                producer.produce(output, each.value(), each.key(), headers=each.headers(), **at)
            member = consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction(consumer.position(consumer.assignment()), member)
            producer.commit_transaction(30)


serve(GoesThroughAHop())
