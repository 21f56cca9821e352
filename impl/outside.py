"""An effect outside of Kafka, for the designs that are written in Python: each output that is sent
is told to a file as well.
"""

import json
from pathlib import Path
from typing import Any


class Outside:
    """The file `effects` of the durable folder, a JSON line [key, value] for each output, where the
    start asks for that.
    """

    def __init__(self, start: dict[str, Any]) -> None:
        is_asked = start["parameters"].get("effects")
        self.file = (
            (Path(start["durable_dir"]) / "effects").open("a", buffering=1) if is_asked else None
        )

    def tell(self, key: bytes | None, value: bytes | None) -> None:
        """Tell one; no transaction takes it back."""
        if self.file:
            said = [each and each.decode(errors="backslashreplace") for each in (key, value)]
            print(json.dumps(said), file=self.file)
