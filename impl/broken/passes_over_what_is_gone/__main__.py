"""Goes on with the earliest record that is left when what it had not read is gone.

Whoever has one setting for a first start and for an offset that was deleted makes this mistake. It
shows where retention was over before a design came back: it says nothing, and every sum lacks what
nobody has read.
"""

from confluent_kafka import Consumer

from upheld.adapter import serve
from upheld.impl.plain import Plain


class PassesOverWhatIsGone(Plain):
    hello = Plain.hello | {"name": "broken/passes_over_what_is_gone"}

    def look_for_a_gap(self, _: Consumer) -> None:
        pass


serve(PassesOverWhatIsGone())
