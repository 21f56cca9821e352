"""The starter of `upheld new` is short enough to be read at once."""

from pathlib import Path

from upheld.scaffold import new

LINES_MAX = 120


def test_the_starter_is_short(tmp_path: Path) -> None:
    """Its module has at most 120 lines, blank ones aside.

    So a reader begins with all of it.
    """
    written = new(tmp_path / "mine")

    assert [path.name for path in written] == ["design.toml", "relay.py"]
    lines = written[1].read_text(encoding="utf-8").splitlines()
    assert sum(1 for line in lines if line.strip()) <= LINES_MAX
