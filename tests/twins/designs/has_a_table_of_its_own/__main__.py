"""Calls a topic that it made the table, as Kafka Streams does with its changelog."""

from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from upheld.adapter import serve
from upheld.impl.plain import Plain


class HasATableOfItsOwn(Plain):
    hello = Plain.hello | {"name": "has_a_table_of_its_own"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        table = f"{start['application_id']}-changelog"
        admin = AdminClient({"bootstrap.servers": start["bootstrap"], **start["client"]})
        (creating,) = admin.create_topics([NewTopic(table, 4)]).values()
        creating.exception(30)
        own = start | {"topics": start["topics"] | {"frequency": table}}
        return super().open(own) | {"internal_topics": [table], "table": table}


serve(HasATableOfItsOwn())
