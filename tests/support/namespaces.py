"""The network namespaces of this machine, to see that none is left."""

from contextlib import suppress
from pathlib import Path


def namespaces() -> set[int]:
    """Return the network namespaces that processes are in."""
    found = set[int]()
    for each in Path("/proc").glob("[0-9]*/ns/net"):
        with suppress(OSError):
            found.add(each.stat().st_ino)
    return found
