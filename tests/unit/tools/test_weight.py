"""An install stays light, and the page shows what it weighs."""

import re
from pathlib import Path

import pytest
import weight
from weight import Wanted, Weight

from upheld import extras

ROW = re.compile(r"^\| `upheld(?:\[(\w+)\])?` \| (\d+) \| ([\d.]+) \|$", re.MULTILINE)
PLATFORMS_DIFFER = 0.15


def test_nothing_weighs_more_than_its_limit() -> None:
    """A new dependency of every install has to be light, or of an extra."""
    found = weight.weights()

    assert weight.LIMITS_MB.keys() <= found.keys()
    assert weight.too_heavy(found) == []


def test_a_limit_that_is_exceeded_is_told() -> None:
    """The sentence has both numbers."""
    heavy = {"": Weight(3, 55.01), "java": Weight(4, 160.0)}

    assert weight.too_heavy(heavy) == ["upheld weighs 55.0 MB, and may weigh 55 MB"]


def test_the_page_shows_the_weights() -> None:
    """They are those of this machine, but for what platforms differ in."""
    shown = {row[1] or "": float(row[3]) for row in ROW.finditer(weight.PART.of(weight.PAGE))}

    assert shown.keys() == {"", *extras.MODULES} == {"", *weight.USERS}
    for extra, each in weight.weights().items():
        assert each.size_mb == pytest.approx(shown[extra], rel=PLATFORMS_DIFFER), extra


def test_the_page_explains_each_extra() -> None:
    """Each has a line with what it is for."""
    page = weight.PAGE.read_text(encoding="utf-8").partition(weight.PART.begin)[0]
    explained = re.findall(r"^\| `(\w+)` \| .+ \| .+ \|$", page, re.MULTILINE)

    assert sorted(explained) == sorted(extras.MODULES)


def test_a_requirement_counts_where_its_marker_is_true() -> None:
    """An extra of an extra is followed, and what is for another system is not."""
    asked = [
        "A_b[cli]>=1",
        "c; sys_platform == 'nowhere'",
        "d; extra == 'more'",
        "e; extra == 'other'",
    ]

    assert [*weight.required(asked, {"more"})] == [Wanted("a-b", frozenset({"cli"})), Wanted("d")]


def test_compiled_files_and_folders_weigh_nothing(tmp_path: Path) -> None:
    """A link to a folder is followed, as the package of a checkout has them."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.py").write_bytes(b"1234")
    (tmp_path / "real" / "a.pyc").write_bytes(b"12345678")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "linked").symlink_to(tmp_path / "real")

    assert weight.size([*weight.tree(tmp_path / "package"), tmp_path / "gone"]) == 4
