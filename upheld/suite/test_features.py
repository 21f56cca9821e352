"""Binds every scenario of the features. The plugin brings the sentences; a second import would load each step twice."""

from pytest_bdd import scenarios

from upheld.catalogue import FEATURES

scenarios(str(FEATURES))
