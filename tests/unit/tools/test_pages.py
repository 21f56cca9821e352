"""A tool writes its part of a page, and leaves the rest as it is."""

from pathlib import Path

from pages import Part


def test_a_part_is_read_as_it_was_written(tmp_path: Path) -> None:
    """The text before and after it is kept."""
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a -->\nold\n<!-- z -->\nafter\n")
    part = Part("<!-- a -->\n", "<!-- z -->")

    part.put(page, "new\n")

    assert part.of(page) == "new\n"
    assert page.read_text() == "before\n<!-- a -->\nnew\n<!-- z -->\nafter\n"
