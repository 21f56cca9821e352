"""`upheld explain` explains each kind of name, and guesses at misspelt ones."""

import json
from typing import Any

import pytest

from upheld.cli import main


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what `explain` prints."""
    assert main(["explain", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("G22", "Scenario Outline: an entry that was committed before the crash"),
        ("@G22", "G22.restarts-at-once"),
        ("G22.dies-after-a-commit", "    And the application is killed after a commit"),
        ("ledger", "ledger (program): "),
        ("duplicated", "duplicated (anomaly): "),
        ("relation", "relation (check): "),
        ("redis", "redis (capability): "),
        ("name-topics", "name-topics (limit of an engine): "),
        ("@wire", "wire (tag): "),
        ("replay", "replay (family): "),
        ("unsupported", "unsupported (verdict): "),
        ("exactly_once", "exactly_once (mode): "),
        ("map", "map (shape): "),
        ("fold", "fold (shape): "),
        ("fold", "fold (check): "),
        ("itself", "itself (oracle): "),
        ("3", "3 (exit code): The harness, the adapter or the machine failed"),
        ("130", "130 (exit code): Interrupted"),
        ("no output is duplicated", "once (check): "),
    ],
)
def test_each_kind_of_name_is_explained(
    capsys: pytest.CaptureFixture[str], name: str, says: str
) -> None:
    """The first line names the kind, and a scenario is shown as the feature has it."""
    assert says in said(capsys, name)


def test_a_scenario_is_explained_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Its Gherkin has the Examples; those of its neighbours are left out."""
    text = said(capsys, "G22.dies-after-a-commit")

    assert text.count("Scenario Outline:") == 1
    assert "| map   | exactly_once |" in text
    assert "Whenever a design dies" in text


def test_a_row_is_explained_with_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    """That is why it may be unsupported."""
    text = said(capsys, "G10.the-same-promises[ledger-at_least_once-cassandra]")

    assert "needs: cassandra\n" in text
    assert "[ledger-at_least_once-redis]" not in text


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("G222", "G222 is no guarantee. Did you mean G22?"),
        ("G22.dies-after-a-comit", "of G22. Did you mean G22.dies-after-a-commit?"),
        ("duplicatd", "Did you mean duplicated?"),
        ("ledgr", "Did you mean ledger?"),
        ("exactly-once", "Did you mean exactly_once?"),
        ("dead-leters", "Did you mean dead-letters?"),
        ("no output is repeated", "Did you mean no output is duplicated?"),
        ("6", "is no guarantee, scenario, program, anomaly, check,"),
    ],
)
def test_a_misspelt_name_is_refused_with_a_guess(
    capsys: pytest.CaptureFixture[str], name: str, guess: str
) -> None:
    """The exit code is 4."""
    assert main(["explain", name]) == 4
    assert guess in capsys.readouterr().err


def test_json_of_a_scenario_has_its_gherkin(capsys: pytest.CaptureFixture[str]) -> None:
    """The keys of a guarantee's JSON are the same for a scenario."""
    whole: dict[str, Any] = json.loads(said(capsys, "G22", "--json"))
    one: dict[str, Any] = json.loads(said(capsys, "G22.dies-after-a-commit", "--json"))

    assert set(whole) == set(one)
    assert len(whole["scenarios"]) > len(one["scenarios"]) == 1
    assert one["scenarios"][0]["gherkin"].startswith("@G22.dies-after-a-commit\nScenario Outline")


def test_json_of_a_name_has_all_its_meanings(capsys: pytest.CaptureFixture[str]) -> None:
    """A script asks for the kind that it wants."""
    found = json.loads(said(capsys, "lag", "--json"))

    assert [meaning["kind"] for meaning in found["meanings"]] == ["check", "capability"]
