"""Stops loudly at an unreadable record, and names it as Kafka's Java client does."""

from confluent_kafka import Message

from upheld.adapter import Failed, serve
from upheld.impl.plain import Holdings, Plain


class AsJavaDoes(Holdings):
    def take(self, message: Message) -> None:
        try:
            super().take(message)
        except Failed as failure:
            where = f"{message.topic()}-{message.partition()} at offset {message.offset()}"
            said = f"Error deserializing VALUE for partition {where}"
            raise Failed(failure.kind, said) from failure


class NamesARecordAsJavaDoes(Plain):
    hello = Plain.hello | {"name": "names_a_record_as_java_does", "programs": ["holdings"]}
    programs = Plain.programs | {"holdings": AsJavaDoes}


serve(NamesARecordAsJavaDoes())
