"""Commits what it has read, then makes the output: at most once in any mode.

The mistake is to leave enable.auto.commit on, or to acknowledge on receipt. It shows where the
process dies between the two. The harness strikes as soon as a commit is seen, or while the outputs
are still undecided.
"""

import time

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Plain

BETWEEN_S = 0.1  # long enough for a commit to be seen before what it was of


class CommitsBeforeOutput(Plain):
    hello = Plain.hello | {"name": "broken/commits_before_output"}

    def process(self, messages: list[Message]) -> None:
        if messages:
            self.consumer.commit(asynchronous=False)
            time.sleep(BETWEEN_S)
        super().process(messages)


serve(CommitsBeforeOutput())
