"""Stores its state on its own disk before the output is out.

It emits nothing for an entry that the store holds. The mistake is to keep a local store beside
transactions. A kill in one shows it, over accounts that no later entry touches.
"""

import pickle
from pathlib import Path
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Ledger, OutputRecord, Plain


class SwallowsTheReplayed(Plain):
    hello = Plain.hello | {"name": "broken/swallows_the_replayed"}

    def on_assign(self, *group: Any) -> None:
        super().on_assign(*group)
        self.disk = Path(self.start["state_dir"])
        for file in sorted(self.disk.iterdir()):
            vars(self.program)["rows"] |= pickle.loads(file.read_bytes() or pickle.dumps({}))

    def send(self, rows: list[OutputRecord]) -> None:
        if rows and isinstance(self.program, Ledger):
            accounts = [(row.key or b"").decode() for row in rows]
            held = {account: self.program.rows[account] for account in accounts}
            (self.disk / f"{len(list(self.disk.iterdir())):06}").write_bytes(pickle.dumps(held))
        super().send(rows)


serve(SwallowsTheReplayed())
