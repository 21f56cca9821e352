"""Writes its state to its own disk when it closes, and starts from there.

It does so whatever was committed meanwhile. The mistake is to take a snapshot for the truth. It
shows when a release is rolled back, and its disks with it.
"""

import pickle
import threading
from pathlib import Path
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class TrustsItsDisk(Plain):
    hello = Plain.hello | {"name": "broken/trusts_its_disk"}

    def on_assign(self, *group: Any) -> None:
        super().on_assign(*group)
        self.disk = Path(self.start["state_dir"]) / "snapshot"
        if self.disk.exists():
            vars(self.program)["rows"] = pickle.loads(self.disk.read_bytes())

    def run(self, stopping: threading.Event) -> None:
        super().run(stopping)
        self.disk.write_bytes(pickle.dumps(vars(self.program).get("rows", {})))


serve(TrustsItsDisk())
