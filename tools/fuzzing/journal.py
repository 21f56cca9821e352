"""The sweep.jsonl of an earlier sweep."""

import json
from typing import Final

from fuzzing import file_of, refused
from upheld.sweep.journal import Journal, Plan

_PLAN: Final = Plan(design="plain", program="relay", mode="exactly_once", scope="txn")
_POINT: Final = {"phase": "first", "api": "produce", "number": 1, "side": "before"}
SEEDS: Final = (
    json.dumps(_PLAN.head | {"seed": 1, "cuts": [_POINT, _POINT | {"then": _POINT}]}).encode()
    + b"\n"
    + json.dumps({"cut": _POINT, "verdict": "upheld", "evidence": {"a": [1]}}).encode()
    + b"\n",
)
WORDS: Final = (
    *(b'"cuts":', b'"seed":', b'"cut":', b'"then":', b'"verdict":', b'"evidence":', b"null", b"[]"),
    *(b"{", b"}", b"\n", b"NaN", b"-1", b"1e999", b"9" * 5_000, json.dumps(_POINT).encode()),
)


def journal(data: bytes) -> None:
    """Open the journal, and ask what remains."""
    path = file_of("sweep.jsonl", data)
    with refused():
        journal = Journal(path.parent, _PLAN)
        for point in journal.remaining(journal.points, is_paired=True):
            assert str(point)
