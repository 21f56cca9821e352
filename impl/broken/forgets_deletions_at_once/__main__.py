"""Filters results that are older than the last one of their row, and forgets a row when it goes.

Whoever spares the memory of deletions makes this mistake. It shows where a result is still on its
way.
"""

from confluent_kafka import Message

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain, Row


class Forgetful(Holdings):
    def take(self, message: Message) -> None:
        super().take(message)
        self.late = [*self.__dict__.get("late", []), *super().changed()]

    def changed(self) -> list[Row]:
        newest, out, late, self.late = (
            dict[bytes, int](),
            list[Row](),
            self.__dict__.get("late", []),
            [],
        )
        # Deletions are quicker.
        for number, row in sorted(enumerate(late), key=lambda each: each[1][1] is not None):
            if number >= newest.get(row[0], -1):
                newest[row[0]], out = -1 if row[1] is None else number, [*out, row]
        return out


class ForgetsDeletionsAtOnce(Plain):
    hello = Plain.hello | {"name": "broken/forgets_deletions_at_once", "programs": ["holdings"]}
    programs = {"holdings": Forgetful}  # noqa: RUF012


serve(ForgetsDeletionsAtOnce())
