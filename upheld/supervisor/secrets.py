"""The secrets of a start request, which no log and no message may show."""

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from upheld.protocol.messages import Start

SHOWN_CHARS: Final = 160
MASK: Final = b"***"
_SECRET: Final = re.compile(r"password|secret|token|key\.pem", re.IGNORECASE)
_LOOKED_AT: Final = 4 * SHOWN_CHARS  # bytes: a character has up to four


class Secrets:
    """Secrets that were sent to an instance, as they are and as JSON writes them."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def learn(self, request: Start) -> None:
        """Add the secrets among a request's client settings and store addresses."""
        values = [value for key, value in request.client.items() if _SECRET.search(key)]
        values += [urlsplit(address).password or "" for address in request.stores.values()]
        for value in filter(None, values):
            self._known |= {
                value,
                json.dumps(value)[1:-1],
                json.dumps(value, ensure_ascii=False)[1:-1],
            }

    def masked(self, line: bytes) -> bytes:
        """Return a line with every secret in it masked."""
        for secret in self._known:
            line = line.replace(secret.encode(), MASK)
        return line

    def shown(self, line: bytes) -> str:
        """Return a line as a message may show it: masked and shortened."""
        text = self.masked(line[:_LOOKED_AT]).decode(errors="replace")
        return repr(text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…")

    def clean(self, log: Path) -> None:
        """Mask a log: a design may have logged the request that it was given."""
        if not self._known:
            return
        clean = log.with_suffix(".clean")
        try:
            with log.open("rb") as lines, clean.open("wb") as kept:
                kept.writelines(self.masked(line) for line in lines)
            clean.replace(log)
        except OSError:  # there is no room for a copy: no log is better than one with secrets
            with contextlib.suppress(OSError):
                clean.unlink(missing_ok=True)
                os.truncate(log, 0)
