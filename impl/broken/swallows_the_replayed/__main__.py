"""Stores its state on its own disk before the output is out, and emits nothing for an entry that
the store holds.

Whoever keeps a local store beside transactions does. A kill in one shows it, over accounts that no
later entry touches.
"""

import pickle
from pathlib import Path
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Ledger, Plain, Row


class SwallowsTheReplayed(Plain):
    hello = Plain.hello | {"name": "broken/swallows_the_replayed"}

    def on_assign(self, *group: Any) -> None:
        super().on_assign(*group)
        self.disk = Path(self.start["state_dir"])
        for file in sorted(self.disk.iterdir()):
            vars(self.program)["rows"] |= pickle.loads(file.read_bytes() or pickle.dumps({}))

    def send(self, rows: list[Row]) -> None:
        if rows and isinstance(self.program, Ledger):
            held = {key.decode(): self.program.rows[key.decode()] for key, *_ in rows}
            (self.disk / f"{len(list(self.disk.iterdir())):06}").write_bytes(pickle.dumps(held))
        super().send(rows)


serve(SwallowsTheReplayed())
