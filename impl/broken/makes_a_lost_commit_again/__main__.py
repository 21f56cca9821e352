"""Whoever takes a lost connection or coordinator for a failed transaction makes it again.

It shows where the commit was made.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain, Row


class MakesALostCommitAgain(Plain):
    hello = Plain.hello | {"name": "broken/makes_a_lost_commit_again", "modes": ["exactly_once"]}

    def transactional_id(self) -> str:
        self.client["logger"], self.client["debug"], self.sent, self.is_broken = (
            self,
            "eos",
            list[Row](),
            False,
        )
        return super().transactional_id()

    def log(self, *said: object) -> None:
        self.is_broken |= any(
            sign in str(said) for sign in ("Disconnected", "EndTxn returned NOT_COORDINATOR")
        )

    def send(self, rows: list[Row]) -> None:
        self.sent += rows
        super().send(rows)

    def commit(self) -> None:
        rows, self.sent, self.is_broken = self.sent, [], False
        super().commit()
        self.producer.poll(0)
        if self.is_broken and rows:
            super().send(rows)
            super().commit()


serve(MakesALostCommitAgain())
