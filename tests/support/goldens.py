"""The golden files: the specification and the protocol without their wording.

A redesign moves code and rewords titles. It changes no row, no promise of a design, no anomaly that
a scenario can find and no message of the protocol. `python tools/golden.py` writes the files.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transcripts import transcript

from upheld.judging.claims import anomalies_of
from upheld.protocol.manifest import load, shipped
from upheld.spec import catalogue, explain
from upheld.spec.schemas import text_of
from upheld.spec.selection import promised

FOLDER = Path(__file__).parents[1] / "data" / "golden"
WORDING = frozenset({"title", "description"})
OF_A_ROW = ("guarantee", "scenario", "program", "mode", "depth")


def rows() -> dict[str, Any]:
    """Return each row by its id."""
    listing = explain.listing(catalogue.load())
    return {row["id"]: {key: row[key] for key in OF_A_ROW} for row in listing["rows"]}


def promises() -> dict[str, Any]:
    """Return the number of rows that each shipped design promises."""
    found = catalogue.load()
    return {name: len(promised(found, load(name))) for name in shipped()}


def explanations() -> dict[str, Any]:
    """Return the rows and the anomalies of each scenario."""
    found = catalogue.load()
    entries = {}
    for guarantee in found.guarantees:
        explained = explain.explanation(found, guarantee, anomalies_of)
        for scenario in explained.scenarios:
            entries[scenario.id] = {
                "guarantee": guarantee,
                "rows": sorted(scenario.rows),
                "anomalies": scenario.anomalies,
            }
    return entries


def protocol() -> dict[str, Any]:
    """Return the protocol's JSON Schema by message, without wording."""
    schema = json.loads(text_of("protocol"))
    parts = {name: part for name, part in schema.items() if name not in {*WORDING, "$defs"}}
    parts |= {f"$defs.{name}": part for name, part in schema["$defs"].items()}
    return {name: _without_wording(part) for name, part in parts.items()}


def _without_wording(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_wording(each) for each in part]
    if not isinstance(part, Mapping):
        return part
    return {
        key: _without_wording(value)
        for key, value in part.items()
        if key not in WORDING or not isinstance(value, str)
    }


GOLDENS = {
    "rows.json": rows,
    "promises.json": promises,
    "explain.json": explanations,
    "schema.json": protocol,
}
TRANSCRIPT = (
    "transcript.json"  # compared by transcripts.differences, which name a row's first other call
)


def as_text(entries: Mapping[str, Any]) -> str:
    """Write one entry a line, sorted by key.

    A diff then shows the entries that changed.
    """
    lines = (f"{json.dumps(key)}: {json.dumps(entries[key])}" for key in sorted(entries))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def differences(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each entry that is not the same."""
    for key in sorted(expected.keys() | actual.keys()):
        if key not in actual:
            yield f"{key} is gone"
        elif key not in expected:
            yield f"{key} is new"
        elif expected[key] != actual[key]:
            yield f"{key} was {json.dumps(expected[key])} and is {json.dumps(actual[key])}"


def write() -> None:
    """Write every golden file."""
    FOLDER.mkdir(exist_ok=True)
    for name, entries in (GOLDENS | {TRANSCRIPT: transcript}).items():
        (FOLDER / name).write_text(as_text(entries()), encoding="utf-8")


def stored(name: str) -> dict[str, Any]:
    """Read a golden file."""
    entries: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return entries
