"""Takes for visible what the committed input says.

More of it was sent before the crash. The mistake is to restore a state and not its results. It
shows where a row goes during an outage, and its insertion and deletion are read together.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain

QUIET_S = 0.3


class FromTheInput(Holdings):
    def restore(self, rows: list[Message]) -> None:
        super().restore(rows)
        self.shown = {key for key in self.left if self.result(key)}


class ForgetsWhatIsVisible(Plain):
    hello = Plain.hello | {
        "name": "broken/forgets_what_is_visible",
        "programs": ["holdings"],
        "modes": ["at_least_once"],
    }
    programs = Plain.programs | {"holdings": FromTheInput}

    def read_chunk(self, wait_s: float) -> None:
        """Read on while something comes: a slow machine would divide what is there."""
        super().read_chunk(wait_s)
        read = 0
        while len(self.chunk) > read:
            read = len(self.chunk)
            super().read_chunk(QUIET_S)


serve(ForgetsWhatIsVisible())
