"""A scenario asks for a shape, unless its promise hangs on a program of ours."""

from pathlib import Path

import pytest

from upheld.judging.prerequisites import fits
from upheld.lint.shapes import OF_PROGRAMS, breaches
from upheld.spec import catalogue

SHIPPED = catalogue.FEATURES
FILE = "transactions/dead_for_good.feature"


def found(folder: Path, *changes: tuple[str, str]) -> list[str]:
    """Return what is found in a folder with one shipped feature, changed."""
    text = (SHIPPED / FILE).read_text()
    for old, new in changes:
        assert old in text, "the change must change something"
        text = text.replace(old, new)
    (folder / FILE).parent.mkdir(parents=True)
    (folder / FILE).write_text(text)
    (folder / catalogue.FILE_NAME).write_text((SHIPPED / catalogue.FILE_NAME).read_text())
    return list(breaches(catalogue.load(folder)))


def test_a_promise_of_any_application_asks_for_its_shape(tmp_path: Path) -> None:
    """A program that is named for no reason would leave applications out."""
    named = (("a <shape>", "<program>"), ("| shape |", "| program |"), ("| fold ", "| ledger "))

    (finding,) = found(tmp_path, *named, ("| map ", "| nothing "))

    assert "no sentence hangs on ledger; ask for its shape, “a fold in mode …”." in finding


def test_a_promise_that_hangs_on_a_program_names_it(tmp_path: Path) -> None:
    """An application has no such input, so it would be asked in vain."""
    own = ("4000 records over", "4000 republished records over")

    (first, _) = found(tmp_path, own)

    assert "is true of relay alone; name the program, not its shape." in first


def test_neither_is_found_in_the_features_that_ship() -> None:
    """They ask for shapes wherever they can."""
    assert list(breaches(catalogue.load())) == []


@pytest.mark.parametrize("sentence", OF_PROGRAMS)
def test_each_sentence_of_a_program_is_said(sentence: str) -> None:
    """A sentence that is worded anew would let a shape be asked for in vain."""
    rows = (row for scenario in catalogue.load().scenarios for row in scenario.rows)

    assert any(fits(sentence, step.text) for row in rows for step in row.steps)
