"""Writes what it cannot read into its log, and goes on.

The mistake is to let nothing stop the stream. It shows wherever a record cannot be read.
"""

import sys

from confluent_kafka import Message

from upheld.adapter import Failed, serve
from upheld.impl.plain import Plain


class DropsWhatItCannotRead(Plain):
    hello = Plain.hello | {"name": "broken/drops_what_it_cannot_read"}

    def set_aside(self, message: Message, failure: Failed) -> None:
        print(failure, file=sys.stderr)


serve(DropsWhatItCannotRead())
