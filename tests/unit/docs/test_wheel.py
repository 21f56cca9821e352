"""The wheel holds the files of the tree.

A feature that the wheel forgets is a promise that nobody judges.
"""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

import upheld

ROOT = Path(__file__).parents[3]
SOURCES = (
    "upheld",
    "features",
    "steps",
    "generators",
    "impl",
    "tests",
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "NOTICE",
    "SECURITY.md",
    "bootstrap.py",
    *sorted(path.name for path in ROOT.glob("constraints*.txt")),
)
NO_SOURCE = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
BUILD = "import sys; from setuptools import build_meta; build_meta.{hook}(sys.argv[1])"
DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the unpacked source distribution of the tree."""
    folder = tmp_path_factory.mktemp("unpacked")
    name = f"upheld-{upheld.__version__}"
    archive = build(copied(tmp_path_factory), "build_sdist", f"{name}.tar.gz")
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(folder)], check=True)
    return folder / name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[PurePosixPath]:
    """Return the files of a wheel that is built from the tree."""
    return files_of_a_wheel(copied(tmp_path_factory))


def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new copy of the tree, in which nothing was built before."""
    folder = tmp_path_factory.mktemp("copy")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=NO_SOURCE)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def build(folder: Path, hook: str, name: str) -> Path:
    """Build a distribution in a folder with the installed backend, without a network."""
    command = [sys.executable, "-c", BUILD.format(hook=hook), str(folder)]
    subprocess.run(command, cwd=folder, capture_output=True, timeout=DEADLINE_S, check=True)
    return folder / name


def files_of_a_wheel(folder: Path) -> set[PurePosixPath]:
    """Build a wheel in a folder and return the files in it."""
    built = build(folder, "build_wheel", f"upheld-{upheld.__version__}-py3-none-any.whl")
    with ZipFile(built) as archive:
        return {PurePosixPath(name) for name in archive.namelist()}


def tree() -> set[PurePosixPath]:
    """Return every file of the package, through the links to the top-level folders."""
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
        "upheld/data/schemas/design.schema.json",
        "upheld/data/schemas/protocol.schema.json",
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
        "upheld/scaffold/application/app.py",
        "upheld/scaffold/application/design.toml",
        "upheld/scaffold/application/orders.jsonl",
        "upheld/scaffold/starter/design.toml",
        "upheld/scaffold/starter/relay.py",
    }
    assert len([name for name in names if name.endswith(".feature")]) > 10
    assert (
        len([name for name in names if "/impl/broken/" in name and name.endswith("/design.toml")])
        >= 7
    )
    assert not [name for name in names if name.startswith("tests/")]


def test_the_wheel_says_what_others_have_made(wheel: set[PurePosixPath]) -> None:
    """License and notice travel with each copy."""
    licenses = {file.name for file in wheel if file.parent.name == "licenses"}

    assert licenses == {"LICENSE", "NOTICE"}


def test_the_source_distribution_makes_the_same_wheel(
    unpacked: Path,
    wheel: set[PurePosixPath],
) -> None:
    """`python -m build` makes the wheel from it, not from the tree."""
    assert files_of_a_wheel(unpacked) == wheel


def test_the_source_distribution_holds_documents_and_no_test(unpacked: Path) -> None:
    """The source distribution has no test, because tests need the whole repository.

    Setuptools by itself would add those named test_*.py.
    """
    names = {path.name for path in unpacked.iterdir()}

    assert names >= {
        "upheld",
        "pyproject.toml",
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "NOTICE",
        "SECURITY.md",
        "constraints.txt",
        "constraints-java.txt",
        "constraints-dev.txt",
    }
    assert "tests" not in names


def test_one_version() -> None:
    """Package and suite have one."""
    assert version("upheld") == upheld.__version__
