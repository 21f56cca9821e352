"""The durations of rows, and the kill matrix."""

from typing import Final

from fuzzing import ROOT, contents, file_of, refused
from upheld.spec import durations, kills

SEEDS: Final = (
    *(each[:4_000] for each in contents(sorted((ROOT / "upheld" / "data").glob("*.json")))),
    b'{"format": 1, "designs": {"plain": {"boot_s": 1.5, "rows_s": {"G1.x[relay-a]": 2.0}}}}',
    b'{"format": 1, "upheld": "1.7", "designs": {"broken/x": {"killed": {"G1.x": {"anomaly": '
    b'"lost", "seconds": 1}}, "upheld": {"G2.y": 2}, "unproven": {"G3.z": "unsteady"}}}}',
)
WORDS: Final = (
    b'"designs":',
    b'"format":',
    b"NaN",
    b"1e999",
    b"-1",
    b"null",
    b"{",
    b"[",
    b"9" * 5_000,
)


def recorded(data: bytes) -> None:
    """Read the file as both, and ask for an estimate."""
    path = file_of("recorded.json", data)
    with refused():
        found = durations.load(path)
        for design in ("plain", "nobody"):
            found.seconds(design, "G1.x[relay-a]")
            found.boot_seconds(design)
    with refused():
        kills.load(path).of("broken/x")
