"""Makes a transaction again if connection or coordinator is lost.

The mistake is to take that for a failed commit. It shows where the commit was made.
"""

from upheld.adapter import serve
from upheld.impl.plain import OutputRecord, Plain


class MakesALostCommitAgain(Plain):
    hello = Plain.hello | {"name": "broken/makes_a_lost_commit_again", "modes": ["exactly_once"]}

    def transactional_id(self) -> str:
        self.client["logger"] = self
        self.client["debug"] = "eos"
        self.sent = list[OutputRecord]()
        self.is_broken = False
        return super().transactional_id()

    def log(self, *said: object) -> None:
        self.is_broken |= any(
            sign in str(said) for sign in ("Disconnected", "EndTxn returned NOT_COORDINATOR")
        )

    def send(self, rows: list[OutputRecord]) -> None:
        self.sent += rows
        super().send(rows)

    def commit(self) -> None:
        rows = self.sent
        self.sent = []
        self.is_broken = False
        super().commit()
        self.producer.poll(0)
        if self.is_broken and rows:
            super().send(rows)
            super().commit()


serve(MakesALostCommitAgain())
