"""Keeps a changelog with the same rows beside the topic that it publishes.

The mistake is to want another name for the table than the framework gave it. It shows on the
broker.
"""

from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from upheld.adapter import serve
from upheld.impl.plain import Plain


class PublishesItsTableTwice(Plain):
    hello = Plain.hello | {"name": "broken/publishes_its_table_twice"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready = super().open(start)
        self.changelog = f"{start['application_id']}-changelog"
        admin = AdminClient(self.client)
        for made in admin.create_topics([NewTopic(self.changelog, 1)]).values():
            made.exception(10)
        return ready | {"internal_topics": [self.changelog]}

    def send(self, rows: list[Any]) -> None:
        super().send(rows)
        for key, value, *_ in rows:
            self.producer.produce(self.changelog, value, key)


serve(PublishesItsTableTwice())
