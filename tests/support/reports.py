"""Summaries of runs that no test had to make."""

from typing import Any

from upheld.report import FORMAT, Summary


def summary(**changes: Any) -> Summary:
    """Return the summary of a run of one design, `mine`, with what a test says of it."""
    said: dict[str, Any] = {
        "format": FORMAT,
        "partial": False,
        "ended": "2026-11-28T07:00:00+00:00",
        "upheld": "0.1.0",
        "seed": 7,
        "depth": "core",
        "design_versions": {"mine": "3"},
        "subjects": {"mine": "sha256:ab"},
        "broker": "embedded 4.3.1",
        "broker_why": "asked for",
        "versions": {},
        "promised": {"mine": 1},
        "chosen": {"mine": 1},
        "judged": {"mine": 1},
        "verdicts": {},
        "known_failures": 0,
        "untested": [],
        "seconds": 2.0,
        "median_seconds": 1.5,
        "peak_memory_mb": 1,
        "exit_code": 0,
    }
    return Summary(**(said | changes))
