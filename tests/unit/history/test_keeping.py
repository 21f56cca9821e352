"""Histories are kept as a run was asked to."""

import gzip
import os
from pathlib import Path

import pytest

from upheld.history.keeping import Keep, kept

LINES = b'{"kind":"begun"}\n' * 1000


def history(folder: Path) -> Path:
    """Write a file as large as a small history."""
    path = folder / "h.jsonl"
    path.write_bytes(LINES)
    return path


@pytest.mark.parametrize(
    ("keep", "is_failed", "left"),
    [
        ("packed", False, "h.jsonl.gz"),
        ("packed", True, "h.jsonl"),
        ("failed", False, None),
        ("failed", True, "h.jsonl"),
        ("all", False, "h.jsonl"),
        ("all", True, "h.jsonl"),
    ],
)
def test_one_form_of_it_is_left(
    tmp_path: Path, keep: Keep, is_failed: bool, left: str | None
) -> None:
    """The other form of an older run is gone, and the lines are the same."""
    (tmp_path / "h.jsonl.gz").write_bytes(b"of an older run")

    path = kept(history(tmp_path), keep, is_failed=is_failed)

    assert (path and path.name) == left
    assert [each.name for each in tmp_path.iterdir()] == ([left] if left else [])
    if path:
        data = path.read_bytes()
        assert (gzip.decompress(data) if path.suffix == ".gz" else data) == LINES


def test_nobody_else_may_read_a_compressed_one(tmp_path: Path) -> None:
    """It may hold what the design was told."""
    path = kept(history(tmp_path), "packed", is_failed=False)

    assert path
    assert path.stat().st_mode & 0o077 == 0


def test_a_link_in_its_place_leads_nowhere(tmp_path: Path) -> None:
    """The file that it leads to stays as it is."""
    foreign = tmp_path / "foreign"
    foreign.write_text("mine")
    (tmp_path / "h.jsonl.gz").symlink_to(foreign)

    kept(history(tmp_path), "packed", is_failed=False)

    assert foreign.read_text() == "mine"


def test_without_room_it_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was recorded is lost to a full disk."""

    def full(*_: object) -> None:
        raise OSError(os.strerror(28))

    monkeypatch.setattr("shutil.copyfileobj", full)
    path = history(tmp_path)

    assert kept(path, "packed", is_failed=False) == path
    assert path.read_bytes() == LINES
    assert list(tmp_path.iterdir()) == [path]
