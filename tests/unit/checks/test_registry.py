"""A check has one name, its anomalies, and tests."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from upheld.checks import ANOMALIES, CHECKS, NEEDS
from upheld.checks.needs import Need
from upheld.checks.registry import check


def classes() -> Iterator[str]:
    """Yield the name of each class of tests in this folder, without its `Test`."""
    for file in Path(__file__).parent.glob("test_*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                yield node.name.removeprefix("Test")


def test_every_check_names_its_anomalies() -> None:
    """Every check has its anomalies, for `explain` and the lint."""
    assert set(ANOMALIES) == set(CHECKS)


def test_every_check_says_what_it_must_have_seen() -> None:
    """No check is satisfied by a history in which nothing ran."""
    assert set(NEEDS) == set(CHECKS)
    assert [name for name, needs in NEEDS.items() if Need.START not in needs] == []
    assert set().union(*NEEDS.values()) == set(Need)


def test_every_check_has_a_class_of_tests() -> None:
    """The name of a class begins with that of its check, as in TestRelationOfSums."""
    checks = {check.replace("-", "") for check in CHECKS}
    found = {name.lower() for name in classes()}

    assert checks <= found
    assert [name for name in found if not name.startswith(tuple(checks))] == []


def test_two_checks_of_one_name_are_refused() -> None:
    """The second would take the place of the first in every history."""
    with pytest.raises(ValueError, match="two checks are called 'fold'"):
        check("fold", anomalies=("torn",), needs={Need.INPUT})(lambda *_: [])
