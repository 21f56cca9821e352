"""Filters older results of a row, and forgets the row when it goes.

The mistake is to spare the memory of deletions. It shows where a result is still on its way.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, OutputRecord, Plain


class Forgetful(Holdings):
    def take(self, message: Message) -> None:
        super().take(message)
        self.late = [*self.__dict__.get("late", []), *super().changed()]

    def changed(self) -> list[OutputRecord]:
        newest = dict[bytes | None, int]()
        out = list[OutputRecord]()
        late = self.__dict__.get("late", [])
        self.late = []
        # Deletions are quicker.
        for number, row in sorted(enumerate(late), key=lambda each: each[1].value is not None):
            if number >= newest.get(row.key, -1):
                newest[row.key] = -1 if row.value is None else number
                out = [*out, row]
        return out


class ForgetsDeletionsAtOnce(Plain):
    hello = Plain.hello | {"name": "broken/forgets_deletions_at_once", "programs": ["holdings"]}
    programs = Plain.programs | {"holdings": Forgetful}


serve(ForgetsDeletionsAtOnce())
