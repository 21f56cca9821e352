"""Keeps a changelog with the same rows beside the topic that it publishes.

The mistake is to want another name for the table than the framework gave it. It shows on the
broker.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.common.topics import make_topic
from upheld.impl.plain import Plain


class PublishesItsTableTwice(Plain):
    hello = Plain.hello | {"name": "broken/publishes_its_table_twice"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        ready = super().open(start)
        self.changelog = f"{start['application_id']}-changelog"
        make_topic(self.client, self.changelog, 1)
        return ready | {"internal_topics": [self.changelog]}

    def send(self, rows: list[Any]) -> None:
        super().send(rows)
        for key, value, *_ in rows:
            self.producer.produce(self.changelog, value, key)


serve(PublishesItsTableTwice())
