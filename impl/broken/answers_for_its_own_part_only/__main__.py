"""Has the rows of its own partitions only, and is not ready for all others.

The mistake is to ask the owner of a row, and to have no replica. It shows when the owner dies.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class AnswersForItsOwnPartOnly(Plain):
    hello = Plain.hello | {"name": "broken/answers_for_its_own_part_only"}

    def query(self, table: str, key: str) -> dict[str, Any]:
        mine = {place.partition for place in self.committed}
        return (
            super().query(table, key)
            if int(key.rsplit("-", 1)[1]) % 4 in mine
            else {"type": "not_ready"}
        )


serve(AnswersForItsOwnPartOnly())
