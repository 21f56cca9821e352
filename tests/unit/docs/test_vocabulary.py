"""The page of all sentences in docs/vocabulary.md."""

from pathlib import Path

import pytest
import vocabulary

ROOT = Path(__file__).parents[3]


def test_the_page_is_up_to_date() -> None:
    """`python tools/vocabulary.py` would change nothing."""
    assert list(vocabulary.out_of_date()) == []


def test_a_check_exits_with_1_and_names_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plain call mends what the check has found."""
    page = tmp_path / "vocabulary.md"

    assert vocabulary.main(["--check"], page) == 1
    assert f"{page} is missing" in capsys.readouterr().out
    page.write_text("old", encoding="utf-8")
    assert vocabulary.main(["--check"], page) == 1
    assert f"{page} is out of date" in capsys.readouterr().out
    assert vocabulary.main([], page) == 0
    assert vocabulary.main(["--check"], page) == 0
    assert f"{page} is up to date" in capsys.readouterr().out


def test_the_page_has_every_sentence_once() -> None:
    """A template stands there once, with the number of its rows."""
    text = vocabulary.page()
    found = [use for uses in vocabulary.uses().values() for use in uses]

    assert len(found) == len({use.template for use in found})
    for use in found:
        assert text.count(f"- {use.keyword} `{use.template}` ({use.rows})\n") == 1, use.template
        assert use.rows > 0
