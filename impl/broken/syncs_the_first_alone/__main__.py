"""Syncs its own disk once, and takes the newest file there for its state.

The mistake is to trust a write. It shows where a disk is rolled back.
"""

import os
import pickle
from pathlib import Path
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class SyncsTheFirstAlone(Plain):
    hello = Plain.hello | {"name": "broken/syncs_the_first_alone", "programs": ["ledger"]}

    def on_assign(self, *group: Any) -> None:
        super().on_assign(*group)
        self.disk = Path(self.start["state_dir"])
        ends = sum(max(0, offset) for offset in self.settled.values())
        if there := [number for number in range(ends + 1) if (self.disk / str(number)).exists()]:
            vars(self.program)["rows"] = pickle.loads((self.disk / str(there[-1])).read_bytes())

    def commit(self) -> None:
        if self.dirty:
            file = self.disk / str(sum(p.offset for p in self.positions()))
            file.write_bytes(pickle.dumps(vars(self.program)["rows"]))
            if len(list(self.disk.iterdir())) == 1:
                os.fsync(os.open(file, os.O_RDONLY))
        super().commit()


serve(SyncsTheFirstAlone())
