"""The pictures of pages are small, and the docs show each of them."""

from pathlib import Path

from screenshots import IMAGES, SIZES

ROOT = Path(__file__).parents[3]
MOST_BYTES = 300_000


def test_each_picture_is_small_and_shown() -> None:
    """A checkout stays light, and no picture is kept that nobody sees."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = "".join(page.read_text(encoding="utf-8") for page in pages)

    for name in SIZES:
        assert (IMAGES / f"{name}.png").stat().st_size < MOST_BYTES
        assert f"images/{name}.png" in shown
    assert {path.name for path in IMAGES.glob("*.png")} == {f"{name}.png" for name in SIZES}
