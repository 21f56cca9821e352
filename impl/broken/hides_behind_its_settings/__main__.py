"""Takes an unreadable file for an absent one, and notes its settings after it.

The mistake is that of `takes_half_a_file_for_none`. It shows only where the file is torn that the
next start reads. The newest file on its disk holds the settings, and nobody reads them. RocksDB's
OPTIONS are such a file.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from upheld.adapter import Failed, serve
from upheld.impl.plain import Place, Plain


class HidesBehindItsSettings(Plain):
    hello = Plain.hello | {"name": "broken/hides_behind_its_settings"}

    def kept_as(self, name: str) -> dict[str, Any]:
        with suppress(Failed):
            return super().kept_as(name)
        return {}

    def keep(self) -> dict[Place, str]:
        names = super().keep()
        settings = Path(self.start["durable_dir"], "OPTIONS")
        settings.write_text(json.dumps(self.start["parameters"]), encoding="utf-8")
        return names


serve(HidesBehindItsSettings())
