"""The order of the files: they are handed out whole, so a long one at the end would leave the other workers idle."""

import pytest

LONGEST = ("test_run.py", "test_brokers.py", "test_sweep.py", "test_reference_submitted.py", "test_cassandra.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
