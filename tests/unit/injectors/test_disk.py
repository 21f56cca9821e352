"""A process's disk change is seen before it happens.

A change that is held does not happen.
"""

import os
import sys
from pathlib import Path

import pytest
from children import child, scope
from miniatures import until

from upheld.injectors.disk.watcher import Disk, Effect, Hold

pytestmark = pytest.mark.skipif(
    bool(Disk.lacking()), reason=f"nobody can be watched here: {Disk.lacking()}"
)
WORKS = """
import os, subprocess
with open("a/x", "w") as file:
    file.write("synced")
    file.flush()
    os.fsync(file.fileno())
    file.write(", and not")
with open("a/y", "w") as file:
    file.write("not")
with open("durable/.7.tmp", "w") as file:
    file.write("whole")
os.rename("durable/.7.tmp", "durable/7")
open("durable/.7.crc", "w").close()
print(open("durable/7").read())
subprocess.run(["rm", "durable/7"])
os.rename("a/x", "a/z")
"""
DONE = ["fsync:a/x", "close:a/x", "close:a/y", "rename:durable/N", "unlink:durable/N", "rename:a/z"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an application's folder: an instance's own, and shared storage."""
    folder = tmp_path / "app"
    for name in ("a", "durable"):
        (folder / name).mkdir(parents=True)
    return folder


def test_what_is_seen(folder: Path) -> None:
    """Changes alone are seen, of children too, with unlike numbers alike.

    Checksums are not seen, nor is the close of a file that is renamed then.
    """
    disk = Disk(folder.parent, scope().spawn)

    process = disk.launch(child([sys.executable, "-c", WORKS], folder))

    assert process.wait() == 0
    assert [effect.api for effect in disk.of(folder)] == DONE
    assert disk.of(folder.parent / "other") == []


@pytest.mark.parametrize("number", range(len(DONE)))
def test_what_is_held(folder: Path, number: int) -> None:
    """It has not happened, and all that comes before it has."""
    disk = Disk(folder.parent, scope().spawn)
    hold = Hold(folder, DONE[number], 1)
    disk.arm(hold)

    process = disk.launch(child([sys.executable, "-c", WORKS], folder))

    until(hold.struck.is_set)
    process.kill()
    process.wait()
    seen = [effect.api for effect in disk.of(folder)]
    assert [api for api in seen if api in DONE] == DONE[:number]
    assert (folder / "durable/7").exists() == (number == 4)
    assert (folder / "a/x").exists()


def test_roll_back(folder: Path) -> None:
    """A file has the bytes of its last fsync, under its new name too.

    A file that had none is gone.
    """
    disk = Disk(folder.parent, scope().spawn)
    disk.launch(child([sys.executable, "-c", WORKS], folder)).wait()

    assert disk.roll_back(folder / "a") == (1, 1)
    assert {file.name: file.read_text() for file in (folder / "a").iterdir()} == {"z": "synced"}


def test_no_such_command(tmp_path: Path) -> None:
    """It is refused as `subprocess.Popen` does."""
    with pytest.raises(FileNotFoundError):
        Disk(tmp_path, scope().spawn).launch(child(["no-such-command"]))


def test_a_file_of_any_name(tmp_path: Path) -> None:
    """A crash point has a name that can be printed and recorded."""
    name = os.fsdecode(b"a\xff\n\x1b[2Jb")
    effect = Effect(tmp_path, "unlink", tmp_path / name, 1, 0.0)

    assert effect.api == r"unlink:a\udcff\n\xNb[NJb"
