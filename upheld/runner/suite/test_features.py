"""Binds every scenario of the features.

The plugin brings the sentences; a second import would load each step twice.
"""

from pytest_bdd import scenarios

from upheld.runner.suite import OWN
from upheld.spec.catalogue import FEATURES

scenarios(str(FEATURES), *OWN)
