"""Sizes that the design promises; run by the lint environment, because a limit that nobody counts is no limit."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def lines(*patterns: str) -> int:
    """Lines of all files that match."""
    return sum(len(p.read_text().splitlines()) for pattern in patterns for p in ROOT.glob(pattern))


RUNTIME = lines(
    *(
        f"impl/spark/{name}.py"
        for name in ("checkpoint", "clock", "daemon", "election", "main", "runtime", "session", "writer")
    )
)
LIMITS = {
    "the reference, programs": (lines("impl/spark/*.py") - RUNTIME, 825),
    "the reference, runtime": (RUNTIME, 1190),
    "the plain design": (lines("impl/plain/*.py"), 855),
    "the adapter": (lines("upheld/adapter.py"), 136),
    **{f"{p.relative_to(ROOT)}": (lines(str(p.relative_to(ROOT))), 34) for p in ROOT.glob("impl/broken/*/*.py")},
}

if __name__ == "__main__":
    over = [f"{name}: {have} lines, at most {limit}" for name, (have, limit) in LIMITS.items() if have > limit]
    print("\n".join(over) or f"{len(LIMITS)} sizes are within their limits")
    sys.exit(bool(over))
