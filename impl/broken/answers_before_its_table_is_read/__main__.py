"""Answers with what it has read of its table so far, be it nothing.

The mistake is to open the port before the state is restored. It shows at every start but the first.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.common.table import Table
from upheld.impl.plain import Plain


class AnswersBeforeItsTableIsRead(Plain):
    hello = Plain.hello | {"name": "broken/answers_before_its_table_is_read"}

    is_late = False

    def query(self, table: str, key: str) -> dict[str, Any]:
        if self.rows and not self.is_late:  # it begins to read when it is first asked
            self.rows.close()
            self.rows = Table(self.client, self.group + "-queries", self.output)
            self.is_late = True
        return {"type": "value", "value": self.rows.rows.get(key) if self.rows else None}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        self.is_late = False
        return super().open(start)


serve(AnswersBeforeItsTableIsRead())
