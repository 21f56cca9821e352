"""Sizes that the design promises; run by the lint environment, because a limit that nobody counts is no limit."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def lines(*patterns: str) -> int:
    """Lines of all files that match."""
    return sum(len(p.read_text().splitlines()) for pattern in patterns for p in ROOT.glob(pattern))


PROGRAMS = lines(
    *(f"impl/spark/{name}.py" for name in ("ledger", "branches", "relay", "batcher", "joins", "pulse", "envelopes"))
)
LIMITS = {
    "the reference, programs": (PROGRAMS, 800),
    "the reference, runtime": (lines("impl/spark/*.py") - PROGRAMS, 1120),
    "the plain design": (lines("impl/plain/*.py"), 785),
    "the adapter": (lines("streamgate/adapter.py"), 130),
    **{f"{p.relative_to(ROOT)}": (lines(str(p.relative_to(ROOT))), 30) for p in ROOT.glob("impl/broken/*/*.py")},
}

if __name__ == "__main__":
    over = [f"{name}: {have} lines, at most {limit}" for name, (have, limit) in LIMITS.items() if have > limit]
    print("\n".join(over) or f"{len(LIMITS)} sizes are within their limits")
    sys.exit(bool(over))
