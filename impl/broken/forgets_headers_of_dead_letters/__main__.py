"""Sends a dead letter with the headers of Kafka Streams, not those of the record.

The mistake is to make a new record of the key and the value alone. It shows in a record that had
headers.
"""

from confluent_kafka import Message

from upheld.adapter import Failed, serve
from upheld.impl.plain import OutputRecord, Plain


class ForgetsHeadersOfDeadLetters(Plain):
    hello = Plain.hello | {"name": "broken/forgets_headers_of_dead_letters"}

    def set_aside(self, message: Message, failure: Failed) -> None:
        told = {
            "exception": "java.lang.IllegalStateException",
            "message": str(failure),
            "stacktrace": None,
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
        }
        added = [
            (f"__streams.errors.{name}", None if said is None else str(said).encode())
            for name, said in told.items()
        ]
        letter = OutputRecord(
            key=message.key(),
            value=message.value(),
            headers=[*added],
            timestamp_ms=message.timestamp()[1],
        )
        self.hand_over([letter], self.start["topics"]["dead_letters"])


serve(ForgetsHeadersOfDeadLetters())
