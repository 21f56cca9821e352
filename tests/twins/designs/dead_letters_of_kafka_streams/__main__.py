"""Sends dead letters with the record's headers, then Kafka Streams' (KIP-1034)."""

from confluent_kafka import Message

from upheld.adapter import Failed, serve
from upheld.impl.plain import OutputRecord, Plain


class DeadLettersOfKafkaStreams(Plain):
    hello = Plain.hello | {"name": "dead_letters_of_kafka_streams"}

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
            headers=[*(message.headers() or []), *added],
            timestamp_ms=message.timestamp()[1],
        )
        self.hand_over([letter], self.start["topics"]["dead_letters"])


serve(DeadLettersOfKafkaStreams())
