"""What is installed is what is in the tree: a feature that the wheel forgets is a promise that nobody judges."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

import upheld

ROOT = Path(__file__).parents[1]
SOURCES = ("upheld", "features", "steps", "generators", "impl", "tests", "pyproject.toml", "README.md", "LICENSE")
NO_SOURCE = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[PurePosixPath]:
    """The files of a wheel built from a copy of the tree, with the backend that is installed: no network is needed."""
    copy = tmp_path_factory.mktemp("copy")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=NO_SOURCE)
        else:
            shutil.copy(ROOT / name, copy / name)
    subprocess.run(
        [sys.executable, "-c", BUILD, str(copy)], cwd=copy, capture_output=True, timeout=DEADLINE_S, check=True
    )
    (built,) = copy.glob("*.whl")
    assert built.name == f"upheld-{upheld.__version__}-py3-none-any.whl"
    with ZipFile(built) as archive:
        return {PurePosixPath(name) for name in archive.namelist()}


def tree() -> set[PurePosixPath]:
    """Every file of the package, through the links to the top-level folders."""
    found = set()
    for folder, folders, files in os.walk(ROOT / "upheld", followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found |= {PurePosixPath(Path(folder, name).relative_to(ROOT).as_posix()) for name in files}
    return found


def test_the_wheel_holds_the_tree_and_nothing_else(wheel: set[PurePosixPath]) -> None:
    """Code, features, manifests, locks and type marks, and no test."""
    packaged = {file for file in wheel if not file.parts[0].endswith(".dist-info")}

    assert packaged == tree()


def test_the_wheel_holds_what_a_run_needs(wheel: set[PurePosixPath]) -> None:
    """Said by name, so that an empty tree and an empty wheel do not agree."""
    names = {str(file) for file in wheel}

    assert names >= {
        "upheld/py.typed",
        "upheld/data/durations.json",
        "upheld/runner/suite/pytest.ini",
        "upheld/runner/suite/test_features.py",
        "upheld/features/guarantees.toml",
        "upheld/generators/envelope.proto",
        "upheld/generators/envelope_pb2.pyi",
        "upheld/brokers/kafka/jgo.lock.toml",
        "upheld/stores/cassandra_server/jgo.lock.toml",
        "upheld/impl/spark/design.toml",
        "upheld/impl/spark/jars/jgo.lock.toml",
        "upheld/impl/plain/design.toml",
        "upheld/scaffold/starter/design.toml",
        "upheld/scaffold/starter/relay.py",
    }
    assert len([name for name in names if name.endswith(".feature")]) > 10
    assert len([name for name in names if "/impl/broken/" in name and name.endswith("/design.toml")]) >= 7
    assert not [name for name in names if name.startswith("tests/")]


def test_one_version() -> None:
    """Package and suite have one."""
    assert version("upheld") == upheld.__version__
