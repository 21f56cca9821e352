"""Scenarios of a user's own are judged, or refused with their place."""

from pathlib import Path

import pytest

from upheld.errors import UsageProblem
from upheld.lint.own import with_own
from upheld.protocol import manifest
from upheld.spec import catalogue
from upheld.spec.selection import Request, chosen_rows

KNOWN = catalogue.load()
FEATURE = """
Feature: Orders are paid once

  @G22.an-order-is-paid-once
  Scenario: after a kill, each order has one cost
    Given relay in mode exactly_once
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed after a commit
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under exactly_once
    And nothing else changes on the broker
"""
TAG = "@G22.an-order-is-paid-once"
ROW = "G22.an-order-is-paid-once[relay-exactly_once]"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the file of a feature that can be judged."""
    found = tmp_path / "sub" / "orders.feature"
    found.parent.mkdir()
    found.write_text(FEATURE)
    return found


def test_rows_of_their_own_stand_beside_those_that_ship(file: Path) -> None:
    """They are chosen by their ids, and with all rows of the guarantee."""
    for place in (file, file.parents[1]):
        found = with_own(KNOWN, [place])

        assert found.own == (file,)
        assert set(found.by_row) - set(KNOWN.by_row) == {ROW}
    plain = manifest.load("plain")
    assert chosen_rows(Request(only=TAG), found, [plain]) == {"plain": {ROW}}
    assert ROW in chosen_rows(Request(guarantees=["G22"]), found, [plain])["plain"]


@pytest.mark.parametrize(("tag", "is_chosen"), [("", True), ("@full", False)])
def test_they_are_judged_at_every_depth_unless_a_tag_says_another(
    file: Path, tag: str, is_chosen: bool
) -> None:
    """A feature that an option names is not left out in silence."""
    file.write_text(FEATURE.replace(TAG, f"{TAG} {tag}"))
    found = with_own(KNOWN, [file])

    chosen = chosen_rows(Request(depth="quick"), found, [manifest.load("plain")])

    assert (ROW in chosen["plain"]) == is_chosen


def test_without_features_nothing_changes() -> None:
    """The catalogue is the one that ships."""
    assert with_own(KNOWN, []) == KNOWN


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (TAG, "", "orders.feature:5: a scenario has one id tag such as @G22.slug"),
        (TAG, "@G9999.mine", "orders.feature:5: guarantees.toml has no guarantee for the id"),
        (TAG, "@G22.dies-after-a-commit", "is taken by transactions/"),
        ("is killed after a commit", "is hit", "orders.feature:9: no step definition matches"),
        ("    And nothing else changes on the broker\n", "", "ends on its side effects"),
        ("Given relay in mode exactly_once", "", "no sentence says what runs"),
        (
            "is killed after a commit",
            "is killed after its next Produce",
            "a line of the scenario needs @wire; tag the scenario.",
        ),
        ("Scenario:", "Scenari:", "is no feature: "),
        (FEATURE, "", "holds no feature"),
    ],
)
def test_what_could_pass_without_a_judgement_is_refused(
    file: Path, old: str, new: str, said: str
) -> None:
    """The sentence names file and line."""
    file.write_text(FEATURE.replace(old, new))

    with pytest.raises(UsageProblem) as refused:
        with_own(KNOWN, [file])

    assert said in str(refused.value)


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_a_place_without_a_feature_is_refused(tmp_path: Path, name: str) -> None:
    """A misspelt folder would leave out all that it was to judge."""
    with pytest.raises(UsageProblem, match="is no feature, and no folder that has one"):
        with_own(KNOWN, [tmp_path / name])
