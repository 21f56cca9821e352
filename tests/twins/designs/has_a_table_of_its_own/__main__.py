"""Calls a topic that it made the table, as Kafka Streams does with its changelog."""

from typing import Any

from upheld.adapter import serve
from upheld.impl.common.topics import make_topic
from upheld.impl.plain import Plain


class HasATableOfItsOwn(Plain):
    hello = Plain.hello | {"name": "has_a_table_of_its_own"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        table = f"{start['application_id']}-changelog"
        make_topic({"bootstrap.servers": start["bootstrap"], **start["client"]}, table, 4)
        own = start | {"topics": start["topics"] | {"frequency": table}}
        return super().open(own) | {"internal_topics": [table], "table": table}


serve(HasATableOfItsOwn())
