"""A hostile disk is read, copied, torn and removed; nothing outside is touched."""

import os
import resource
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from upheld.nemesis.disks import files_of
from upheld.supervisor.folders import MOST_DEPTH, Folder
from upheld.supervisor.removal import remove
from upheld.verdicts import AdapterBreach

PRECIOUS = "a foreign file that has to stay as it is"


class World:
    """A scratch folder with a design's disk in it, and a foreign folder beside."""

    def __init__(self, folder: Path) -> None:
        self.scratch = folder / "scratch"
        self.own = self.scratch / "app" / "a"
        self.own.mkdir(parents=True)
        (self.own / "state").write_text("0123456789")
        self.foreign = folder / "foreign"
        self.foreign.mkdir()
        self.victim = self.foreign / "victim"
        self.victim.write_text(PRECIOUS)
        self.disks = Folder(self.scratch, "app")
        self.kept = Folder(self.scratch, "app-kept")

    def replace(self, path: Path) -> None:
        """Put a link to the foreign folder in the place of a folder."""
        path.rename(path.with_name(f"{path.name}-gone"))
        path.symlink_to(self.foreign)

    def is_unharmed(self) -> bool:
        """Return whether the foreign folder is as it was."""
        return list(self.foreign.iterdir()) == [self.victim] and self.victim.read_text() == PRECIOUS


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Yield a scratch folder with a disk, and remove it however deep it is."""
    yield World(tmp_path)
    assert remove(tmp_path / "scratch")


def _not_utf8(world: World) -> None:
    Path(os.fsdecode(os.fsencode(world.own) + b"/\xff\xfe")).touch()


def _deep(world: World, depth: int = 3_000) -> None:
    """Nest folders deeper than any path, and than Python's stack."""
    at = os.open(world.own, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def _socket(world: World) -> None:
    folder = os.open(world.own, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{folder}/s")
    os.close(folder)


def _no_state(world: World) -> None:
    (world.own / "state").unlink()
    world.own.rmdir()


HOSTILE: dict[str, tuple[Callable[[World], None], str]] = {
    "a link to a file": (
        lambda world: (world.own / "x").symlink_to(world.victim),
        "app/a/x is a symbolic link",
    ),
    "a link to a folder": (
        lambda world: (world.own / "x").symlink_to(world.foreign),
        "app/a/x is a symbolic link",
    ),
    "a dangling link": (lambda world: (world.own / "x").symlink_to("nowhere"), "symbolic link"),
    "a link to itself": (lambda world: (world.own / "x").symlink_to("x"), "symbolic link"),
    "a link in the place of the disk": (lambda world: world.replace(world.own), "symbolic link"),
    "a link in the place of the folder above": (
        lambda world: world.replace(world.own.parent),
        "app is a symbolic link",
    ),
    "a link in the place of the scratch folder": (
        lambda world: world.replace(world.scratch),
        "scratch is a symbolic link",
    ),
    "a socket": (_socket, "app/a/s is a socket"),
    "a pipe": (lambda world: os.mkfifo(world.own / "x"), "app/a/x is a pipe"),
    "a file in the place of the disk": (
        lambda world: (_no_state(world), world.own.touch())[0],
        "app/a is a file",
    ),
    "no disk": (_no_state, "app/a cannot be opened (No such file or directory)"),
    "a name that is not UTF-8": (_not_utf8, "has a name that is not UTF-8"),
    "folders without end": (_deep, f"is nested deeper than {MOST_DEPTH} folders"),
    "an escape in a name": (
        lambda world: (world.own / "\x1b[2J\n").symlink_to("x"),
        r"app/a/\x1b[2J\n is a symbolic link",
    ),
}


@pytest.mark.parametrize("act", ["files", "copy", "tear", "set back"])
@pytest.mark.parametrize(("hostile", "said"), HOSTILE.values(), ids=HOSTILE)
def test_what_a_disk_may_not_hold(
    world: World, hostile: Callable[[World], None], said: str, act: str
) -> None:
    """Each act ends as a breach with one short sentence, and harms nothing outside."""
    hostile(world)
    disk = world.disks / "a"
    acts: dict[str, Callable[[], object]] = {
        "files": disk.files,
        "copy": lambda: disk.copy_to(world.kept),
        "tear": lambda: disk.halve("state"),
        "set back": lambda: disk.set_back(Folder(world.scratch, "app"), {}),
    }

    with pytest.raises(AdapterBreach) as breach:
        acts[act]()

    assert said in str(breach.value)
    assert str(breach.value).isprintable()
    assert len(str(breach.value)) < 400
    assert world.is_unharmed()


@pytest.mark.parametrize("place", ["a", "", "scratch"])
def test_a_folder_is_not_made_behind_a_link(world: World, place: str) -> None:
    """A start after the fact makes no folder elsewhere."""
    path = world.scratch if place == "scratch" else world.scratch / "app" / place
    world.replace(path)

    with pytest.raises(AdapterBreach, match="symbolic link"):
        (world.disks / "a" / "more").make()

    assert world.is_unharmed()


def test_a_plain_disk_is_copied_and_set_back(world: World) -> None:
    """Names, sizes, modes and times are those of the original, at any depth."""
    for number in range(3):
        deep = world.own / f"b{number}" / "c" / "d"
        deep.mkdir(parents=True)
        (deep / "file").write_text(str(number))
        (deep.parent / "é").write_text("x")
    (world.own / "state").chmod(0o640)
    before = files_of(world.disks)

    world.disks.copy_to(world.kept)
    assert files_of(world.kept) == before
    world.disks.remove()
    world.kept.copy_to(world.disks)

    assert files_of(world.disks) == before
    assert (world.own / "state").stat().st_mode & 0o777 == 0o640


def test_many_folders_need_few_descriptors(world: World) -> None:
    """A disk with more folders than this process may open files is copied and removed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for number in range(200):
        (world.own / str(number) / "x").mkdir(parents=True)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    try:
        world.disks.copy_to(world.kept)
        world.kept.remove()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert not world.kept.path.exists()


def test_a_hard_link_is_not_torn(world: World) -> None:
    """The foreign file would be torn with it."""
    os.link(world.victim, world.own / "linked")

    with pytest.raises(AdapterBreach, match="app/a/linked is a hard link"):
        world.disks.halve("a/linked")

    assert world.is_unharmed()


def test_a_hard_link_is_set_back_as_a_new_file(world: World) -> None:
    """The foreign file keeps its content."""
    os.link(world.victim, world.own / "linked")

    assert (world.disks / "a").set_back(Folder(world.scratch, "app/a"), {}) == (0, 2)

    assert world.is_unharmed()


def test_two_names_within_the_disk(world: World) -> None:
    """A file is torn if all of its names are on the disk."""
    os.link(world.own / "state", world.own / "again")

    assert world.disks.halve("a/state") == (10, 5)
    assert (world.own / "again").read_text() == "01234"


def test_a_file_that_fills_the_disk(world: World) -> None:
    """It has a name that no design can have prepared, and is gone at the end."""
    (world.own.parent / "filler").symlink_to(world.victim)

    with world.disks.new_file() as filler:
        filler.write(b"full")
    (world.own.parent / "filler").unlink()

    assert {file.name for file in world.disks.files()} == {"a/state"}
    assert world.is_unharmed()


def test_a_file_is_read_up_to_a_limit(world: World) -> None:
    """A larger one, a pipe and a link are breaches, and nothing hangs."""
    os.mkfifo(world.own / "pipe")
    (world.own / "link").symlink_to(world.victim)

    assert world.disks.read("a/state", 10) == b"0123456789"
    for name, said in (
        ("a/state", "more than 9 bytes"),
        ("a/pipe", "is a pipe"),
        ("a/link", "cannot be read"),
        ("a/none", "No such file"),
    ):
        with pytest.raises(AdapterBreach, match=said):
            world.disks.read(name, 9)


@contextmanager
def _mounted(what: Path, where: Path) -> Iterator[None]:
    bound = subprocess.run(["mount", "--bind", what, where], capture_output=True, check=False)
    if bound.returncode:
        pytest.skip("this user may mount nothing")
    try:
        yield
    finally:
        subprocess.run(["umount", where], check=True)


def test_a_mount_is_not_entered(world: World) -> None:
    """A foreign folder that is bound into the disk is neither listed nor emptied."""
    place = world.own / "bound"
    place.mkdir()
    with _mounted(world.foreign, place):
        with pytest.raises(AdapterBreach, match="mounted from elsewhere"):
            world.disks.files()
        with pytest.raises(AdapterBreach, match="app/a/bound cannot be read or changed"):
            (world.disks / "a" / "bound").remove()
        assert not remove(world.own)
        assert world.is_unharmed()


@pytest.mark.parametrize(("hostile", "_said"), HOSTILE.values(), ids=HOSTILE)
def test_removal_takes_everything_but_what_is_foreign(
    world: World, hostile: Callable[[World], None], _said: str
) -> None:
    """All that the design left is gone afterwards, a link itself as well."""
    hostile(world)

    assert remove(world.scratch)

    assert not os.path.lexists(world.scratch)
    assert world.is_unharmed()


def test_removal_of_a_folder_without_rights(world: World) -> None:
    """The rights that a design took away from its user are given back."""
    (world.own / "x" / "y").mkdir(parents=True)
    for path in (world.own / "x" / "y", world.own / "x", world.own):
        path.chmod(0)

    assert remove(world.own)


def test_removal_of_nothing(world: World) -> None:
    """A folder that is not there is no error."""
    assert remove(world.scratch / "none" / "none")
