"""Keeps state before it commits, and gives a slow commit up.

The mistake is to stop then: a batch is swallowed. It shows where a coordinator moves.
"""

import pickle
from pathlib import Path
from typing import Any

from upheld.adapter import serve
from upheld.impl.common.clients import with_timeout
from upheld.impl.plain import OutputRecord, Plain


class BelievesWhatItHasNotCommitted(Plain):
    hello = Plain.hello | {
        "name": "broken/believes_what_it_has_not_committed",
        "programs": ["ledger"],
    }

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        self.disk = Path(start["state_dir"]) / "states"
        self.patience_s = 10 if self.disk.exists() or start["mode"] != "exactly_once" else 1
        return super().open(start)

    def on_assign(self, *group: Any) -> None:
        super().on_assign(*group)
        if self.disk.exists():
            vars(self.program)["rows"] |= pickle.loads(self.disk.read_bytes())

    def send(self, rows: list[OutputRecord]) -> None:
        if rows:
            self.disk.write_bytes(pickle.dumps(vars(self.program)["rows"]))
        super().send(rows)

    def commit(self) -> None:
        with_timeout(self.patience_s, super().commit)


serve(BelievesWhatItHasNotCommitted())
