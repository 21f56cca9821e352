"""The JSON Schemas that ship, and the schema of the envelope.

`tools/schemas.py` writes them from the models.
"""

from pathlib import Path
from typing import Final

from upheld.reading import read_text

PACKAGE: Final = Path(__file__).parents[1]
FOLDER: Final = PACKAGE / "data" / "schemas"
ENVELOPE: Final = "envelope"  # in the language of Protocol Buffers

# Not those of `upheld.programs`, which take long to load.
PROGRAMS: Final = (
    "relay",
    "ledger",
    "branches",
    "pulse",
    "batcher",
    "clients",
    "tickers",
    "holdings",
)
# What each describes, for a person.
SCHEMAS: Final = {
    "protocol": "each line between the harness and a design",
    "protocol-1": "the same in version 1, which is still spoken",
    "design": "a design.toml",
    "report": "each line of a report.jsonl",
    "history": "each line of a history",
    **{name: f"the records of {name}, with examples" for name in PROGRAMS},
    ENVELOPE: "the values of entries and of relayed records, in Protocol Buffers",
}


def path_of(name: str) -> Path:
    """Return the file of a schema."""
    if name == ENVELOPE:
        return PACKAGE / "generators" / "envelope.proto"
    return FOLDER / f"{name}.schema.json"


def text_of(name: str) -> str:
    """Return the text of a schema."""
    return read_text(path_of(name))
