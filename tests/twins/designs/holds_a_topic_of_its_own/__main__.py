"""Reads its own topic in the group, as engines read changelogs and leader topics."""

from typing import Any

from upheld.adapter import serve
from upheld.impl.common.topics import make_topic
from upheld.impl.plain import Plain
from upheld.impl.plain.programs import PROGRAMS, Ledger


class WithLeader(Ledger):
    reads = (*Ledger.reads, "leader")


class HoldsATopicOfItsOwn(Plain):
    hello = Plain.hello | {"name": "holds_a_topic_of_its_own"}
    programs = PROGRAMS | {"ledger": WithLeader}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        leader = f"{start['application_id']}-leader"
        make_topic({"bootstrap.servers": start["bootstrap"], **start["client"]}, leader, 1)
        own = start | {"topics": start["topics"] | {"leader": leader}}
        return super().open(own) | {"internal_topics": [leader]}


serve(HoldsATopicOfItsOwn())
