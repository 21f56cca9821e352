"""`upheld schema` prints the schemas that ship."""

import json

import pytest

from upheld.cli import main
from upheld.spec.schemas import SCHEMAS, text_of


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_printed_as_it_ships(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing but its text is printed, so that it can be kept in a file."""
    assert main(["schema", name]) == 0
    assert capsys.readouterr().out == text_of(name)


def test_the_protocol_is_printed_if_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """An adapter is what most readers write."""
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["$id"] == "urn:upheld:protocol:2"


def test_a_misspelt_schema_gets_a_guess(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is that of what was typed."""
    assert main(["schema", "desing"]) == 4
    assert "Did you mean design?" in capsys.readouterr().err


def test_the_help_says_what_each_describes(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader finds a schema by what it is of."""
    assert main(["schema", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for name, what in SCHEMAS.items():
        assert f"{name}: {what}" in said
