"""Answers from the state that it works on, which may not be committed yet.

The mistake is to serve a store that a transaction is still changing. It shows between two commits.
"""

import json
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain
from upheld.impl.plain.programs import Pulse


class AnswersWhatIsUnderWay(Plain):
    hello = Plain.hello | {"name": "broken/answers_what_is_under_way", "modes": ["exactly_once"]}

    def query(self, table: str, key: str) -> dict[str, Any]:
        assert isinstance(self.program, Pulse)
        row = self.program.rows.get(key, {})
        return {"type": "value", "value": json.dumps(row) if "points" in row else None}


serve(AnswersWhatIsUnderWay())
