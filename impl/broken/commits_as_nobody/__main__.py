"""Takes over from another cluster by a commit of nobody, before joining its group.

The mistake is to take the group for empty. It shows when a cluster comes back within the session of
its last member. The coordinator knows that member, and takes no commit of another one.
"""

from typing import Any

from confluent_kafka import Consumer, TopicPartition

from upheld.adapter import serve
from upheld.impl.plain import Plain


class CommitsAsNobody(Plain):
    hello = Plain.hello | {"name": "broken/commits_as_nobody"}

    def take_hold(self, start: dict[str, Any]) -> dict[str, Any]:
        offsets = [TopicPartition(*place, offset) for place, offset in self.after.items()]
        self.after = {}
        if offsets:
            group = f"{start['application_id']}-group"
            settings = {"bootstrap.servers": start["bootstrap"], "group.id": group}
            Consumer(settings | start["client"]).commit(offsets=offsets, asynchronous=False)
        return super().take_hold(start)


serve(CommitsAsNobody())
