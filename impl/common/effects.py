"""A side effect outside of Kafka: each output becomes a line of a file."""

import json
from pathlib import Path
from typing import Any


class Effects:
    """The file `effects` in the durable folder, if the start asks for it.

    Each output is a JSON line [key, value].
    """

    def __init__(self, start: dict[str, Any]) -> None:
        is_asked = start["parameters"].get("effects")
        self.file = (
            (Path(start["durable_dir"]) / "effects").open("a", buffering=1) if is_asked else None
        )

    def report(self, key: bytes | None, value: bytes | None) -> None:
        """Write the line of an output; no transaction takes it back."""
        if self.file:
            said = [each and each.decode(errors="backslashreplace") for each in (key, value)]
            print(json.dumps(said), file=self.file)
