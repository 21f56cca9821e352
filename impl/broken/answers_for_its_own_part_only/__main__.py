"""Has the rows of its own partitions only, and is not ready for all others.

The mistake is to ask the owner of a row, and to have no replica. It shows when the owner dies.
"""

import json
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class AnswersForItsOwnPartOnly(Plain):
    hello = Plain.hello | {"name": "broken/answers_for_its_own_part_only"}

    def query(self, table: str, key: str) -> dict[str, Any]:
        answer = super().query(table, key)
        if answer.get("value") is None:
            return answer
        mine = {place.partition for place in self.committed}
        applied = json.loads(answer["value"])["applied"]
        read_from = {place["partition"] for place in applied.values()}
        return answer if read_from <= mine else {"type": "not_ready"}


serve(AnswersForItsOwnPartOnly())
