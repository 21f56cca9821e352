"""Aborts a transaction whose offsets are not taken at once, and goes on behind it.

Whoever takes an abort for the end of the matter, and does not go back to what was read for it, makes this mistake. It shows
where a coordinator is busy for a moment.
"""

from confluent_kafka import KafkaException

from streamgate.adapter import serve
from streamgate.impl.plain import Plain

NAME = "broken/passes_over_what_it_aborts"
PATIENCE_S = 0.2  # less than it takes the client to try again


class PassesOverWhatItAborts(Plain):
    hello = Plain.hello | {"name": NAME, "programs": ["relay"], "modes": ["exactly_once"]}

    def commit(self) -> None:
        if not self.dirty:
            return
        try:
            self.producer.send_offsets_to_transaction(self.positions(), self.membership(), PATIENCE_S)
            self.producer.commit_transaction(30)
        except KafkaException:
            self.producer.abort_transaction(30)
        self.in_transaction = self.dirty = False


serve(PassesOverWhatItAborts())
