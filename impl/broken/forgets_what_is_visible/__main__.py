"""Takes for visible what the committed input says.

More of it was sent before the crash. The mistake is to restore a state and not its results. It
shows where a row goes during an outage.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain


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


serve(ForgetsWhatIsVisible())
