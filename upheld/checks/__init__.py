"""Checks: pure functions from a history to the anomalies in it.

They know no broker, no clock and no design. A check takes the history as it was when the feature
asked, and the application that the sentence is about. It returns anomalies, or an empty list. The
mode decides what is legal, and each rule says why. A check registers itself when its module is
imported, and all modules here are.
"""

from importlib import import_module
from pkgutil import iter_modules

from upheld.checks.registry import ANOMALIES, CHECKS, NEEDS

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)

__all__ = ["ANOMALIES", "CHECKS", "NEEDS"]
