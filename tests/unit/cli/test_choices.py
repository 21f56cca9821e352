"""The default design is refused where it cannot run, before anything is started."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from upheld import extras
from upheld.cli import designs, main, run

FIXED = """
name = "fees"
version = "1"
modes = ["at_least_once"]
shape = "map"
names = "fixed"
group = "fees"
[input.payments]
topic = "payments.received"
sample = "payments.jsonl"
key = "$.account"
[output.fees]
topic = "payments.fees"
[process.app]
command = ["{python}", "app.py", "{bootstrap}"]
"""


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
@pytest.mark.parametrize("command", ["run", "sweep"])
def test_fixed_names_and_a_cluster_of_somebody_else(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    """Names of a deployment may be those of its real one: nothing is touched."""
    (tmp_path / "payments.jsonl").write_text('{"id": "1", "account": "a"}\n')
    (tmp_path / "app.py").touch()
    (tmp_path / "design.toml").write_text(FIXED)

    assert main([command, "--design", ".", "--bootstrap", "production:9092"]) == 4

    assert "`names` are fixed, and on the cluster of --bootstrap" in capsys.readouterr().err
    assert not (tmp_path / "upheld-out").exists()


@pytest.mark.usefixtures("_without_pyspark")
def test_what_needs_no_default_is_not_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A list names no design, and a sweep has another default."""
    assert main(["list"]) == 0
    assert main(["sweep", "--mode", "at_least_once", "--disk", "burnt"]) == 4
    assert "pyspark" not in capsys.readouterr().err
