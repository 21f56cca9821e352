"""The failures that a query can die of, as the protocol names them."""

import re
from typing import Final

from upheld.adapter import Failed

# A pattern in the text of an exception -> the kind of failure.
FAILURES: Final = {
    # As it is said of a record; a plan that is quoted has the words alone.
    r"poison: (?:\S+@\d|a record)[^\n]*": "poison",
    r"CONCURRENT_STREAM_LOG_UPDATE[^\n]*": "fenced",
    r"[^\n]*is out of range for partition[^\n]*": "offset-lost",
    r"(?i)[^\n]*data (?:may have been|was|were|loss)[^\n]*": "offset-lost",
    r"[^\n]*No space left on device[^\n]*": "storage",
}


def failure_of(text: str) -> Failed:
    """Return the failure that the text of an exception stands for."""
    for pattern, kind in FAILURES.items():
        if match := re.search(pattern, text):
            return Failed(kind, match[0])
    return Failed("storage", text.splitlines()[0])
