"""Has the application's id inside a topic's name, and a UUID as transactional id."""

from typing import Any
from uuid import NAMESPACE_OID, uuid5

from upheld.adapter import serve
from upheld.impl.common.topics import make_topic
from upheld.impl.plain import Plain


class NamesByUuidAndStore(Plain):
    hello = Plain.hello | {"name": "names_by_uuid_and_store"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        changelog = f"changelog__{start['application_id']}--default"
        make_topic({"bootstrap.servers": start["bootstrap"], **start["client"]}, changelog, 1)
        return super().open(start) | {
            "internal_topics": [changelog],
            "transactional_id_prefix": self.transactional_id(),
        }

    def transactional_id(self) -> str:
        return str(uuid5(NAMESPACE_OID, super().transactional_id()))


serve(NamesByUuidAndStore())
