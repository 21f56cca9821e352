"""Takes for visible what the committed input says.

The mistake is to restore a state and not its results. It shows where a row goes in an outage.
"""

import time

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain

A_WHILE_S = 0.3  # a slow machine too reads the insertion and the deletion of a row together


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

    def read_chunk(self, _: float) -> None:
        for _ in range(3):
            super().read_chunk(A_WHILE_S)

    def await_outputs(self) -> None:
        super().await_outputs()
        time.sleep(A_WHILE_S)  # rows of a second wave would be known by their first one


serve(ForgetsWhatIsVisible())
