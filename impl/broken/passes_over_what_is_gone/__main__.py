"""Goes on with the earliest record left if what it had not read is gone.

The mistake is one setting for a first start and for an offset that was deleted. It shows where
retention was over before a design came back. The design says nothing, and every sum lacks the
records that no instance has read.
"""

from confluent_kafka import Consumer

from upheld.adapter import serve
from upheld.impl.plain import Plain


class PassesOverWhatIsGone(Plain):
    hello = Plain.hello | {"name": "broken/passes_over_what_is_gone"}

    def look_for_a_gap(self, _: Consumer) -> None:
        pass


serve(PassesOverWhatIsGone())
