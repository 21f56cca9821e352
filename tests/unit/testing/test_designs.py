"""Designs as tests name them, and the plugin that finds the tests."""

import doctest
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import upheld
from upheld.testing.designs import Asked, Design

ROOT = Path(__file__).parents[3]


def test_the_examples_of_the_package_are_true() -> None:
    """They are what a reader of its docstring types."""
    found = doctest.testmod(upheld)

    assert found.attempted > 0
    assert found.failed == 0


def test_pytest_finds_the_plugin() -> None:
    """It is an entry point of the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    plugin = import_module(project["entry-points"]["pytest11"]["upheld"])

    assert plugin.upheld_row


def test_a_path_begins_in_the_folder_of_the_calling_file() -> None:
    """The current folder does not matter."""
    assert upheld.design("design.toml").path == Path(__file__).with_name("design.toml")
    assert upheld.design("/srv/../orders").path == Path("/orders")


def test_a_module_gets_a_test_of_its_features() -> None:
    """Its name is that of the folder, and a second one has another name."""
    names: dict[str, object] = {"__file__": "/srv/tests/test_it.py", "__name__": "test_it"}
    code = "import upheld; upheld.scenarios('own features'); upheld.scenarios('own features')"
    exec(compile(code, "/srv/tests/test_it.py", "exec"), names)
    test = names["test_own_features"]
    (mark,) = [each for each in test.pytestmark if each.name == "upheld"]

    assert mark.args == (
        Asked(
            Design(Path("/srv/tests/design.toml")), (), features=(Path("/srv/tests/own features"),)
        ),
    )
    assert test.__code__.co_filename == "/srv/tests/test_it.py"
    assert "test_own_features_" in names


def test_a_design_may_be_named_by_its_path_or_as_it_is() -> None:
    """Both stand for the same."""
    design = upheld.design("/srv/orders", options=("--seed", "7"))
    for given, expected in ((design, design), ("/srv/orders", Design(Path("/srv/orders")))):
        names: dict[str, object] = {"__file__": "/srv/t.py", "__name__": "t", "given": given}
        exec("import upheld; upheld.scenarios(design=given)", names)
        (mark,) = [each for each in names["test_features"].pytestmark if each.name == "upheld"]

        assert mark.args[0].design == expected


def test_a_marked_test_needs_the_plugin() -> None:
    """Without it the test is an error, and not a pass."""
    design = upheld.design("/srv/orders")

    @design.guarantees("G22")
    def test() -> None:
        pass

    needs = [each.args for each in test.pytestmark if each.name == "usefixtures"]

    assert needs == [("upheld_row",)]
    assert isinstance(pytest.mark.upheld, pytest.MarkDecorator)
