"""Takes the position where the other cluster ended for its last one.

So it passes over the record that comes first. The mistake is to mix up last offset and next offset.
It shows in the records that no cluster reads at a switch.
"""

from typing import Any

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Plain


class TakesOverOneTooLate(Plain):
    hello = Plain.hello | {"name": "broken/takes_over_one_too_late"}
    late = frozenset[str]()

    def activate(self, after: dict[str, int]) -> dict[str, Any]:
        self.late = frozenset(after)
        return super().activate(after)

    def process(self, messages: list[Message]) -> None:
        first = {f"{each.topic()}-{each.partition()}": each for each in reversed(messages)}
        passed_over = [first[place] for place in self.late & first.keys()]
        self.late -= first.keys()
        super().process([each for each in messages if each not in passed_over])


serve(TakesOverOneTooLate())
