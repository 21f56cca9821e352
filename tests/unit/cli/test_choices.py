"""The default design is refused where it cannot run, before anything is started."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from upheld import extras
from upheld.cli import designs, main, run


@pytest.fixture
def _without_pyspark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work where PySpark is not installed, and no broker may be started."""

    def found(name: str) -> object:
        return None if name == "pyspark" else find_spec(name)

    def never(*_: object) -> None:
        raise AssertionError("something was started")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(extras, "find_spec", found)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setattr(run, "judge_in_turn", never)
    monkeypatch.setattr(run, "judge_in_lanes", never)
    monkeypatch.setattr(designs, "own_folder", never)


@pytest.mark.usefixtures("_without_pyspark")
@pytest.mark.parametrize("line", ["run", "run --only @G22 --lanes 2", "smoke"])
def test_no_design_and_no_pyspark(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str
) -> None:
    """One sentence says what to install or to name; the exit code is 4."""
    assert main(line.split()) == 4

    said = capsys.readouterr().err
    assert said == (
        "upheld: No design is named, and the default one, spark, cannot run: the Python module "
        "pyspark is not installed (`pip install 'upheld[spark]'` brings it); or name one, such as "
        "--design plain.\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_without_pyspark")
def test_what_needs_no_default_is_not_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A list names no design, and a sweep has another default."""
    assert main(["list"]) == 0
    assert main(["sweep", "--mode", "at_least_once", "--disk", "burnt"]) == 4
    assert "pyspark" not in capsys.readouterr().err
