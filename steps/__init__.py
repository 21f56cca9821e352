"""The sentences that the features are written in: one fact a line, by concept.

The Given lines describe a deployment, the others act on a trial, the Then lines claim. The
thinking is left to trials, faults and checks.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def modules() -> list[ModuleType]:
    """Import every module of sentences; each is to be a plugin of pytest."""
    return [import_module(found.name) for found in iter_modules(__path__, f"{__name__}.")]
