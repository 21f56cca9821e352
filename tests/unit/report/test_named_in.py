"""A report names files of its own folder, and no others are read for it."""

from pathlib import Path

import pytest

from upheld.report.folder import named_in


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of a run, beside a file and a folder that are not its own."""
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "run"
    (folder / "history").mkdir(parents=True)
    (folder / "history" / "a.svg").write_text("x")
    (folder / "away").symlink_to(tmp_path)
    (folder / "link").symlink_to("history/a.svg")
    return folder


def test_a_file_of_the_folder_is_found(run: Path) -> None:
    """Also where the folder is named in another way."""
    assert named_in(run, "history/a.svg") == run / "history" / "a.svg"
    assert named_in(run / "history" / "..", "history/a.svg")


@pytest.mark.parametrize(
    "name",
    ["", "history", "none", "../secret", "/etc/passwd", "away/secret", "link", "a\0b", "x" * 5000],
    ids=ascii,
)
def test_any_other_name_is_none_of_a_report(run: Path, name: str) -> None:
    """Nothing is raised, whatever stands in the report."""
    assert named_in(run, name) is None
