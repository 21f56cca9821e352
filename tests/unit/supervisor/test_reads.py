"""The files that a start reads back are seen, by the file and not by its name."""

import os
from pathlib import Path
from uuid import uuid4

import pytest

from upheld.supervisor.folders import Folder
from upheld.supervisor.reads import KnownReads, Reads

TORN = "a/OPTIONS-7"


@pytest.fixture
def disk(tmp_path: Path) -> Folder:
    """Return a disk as RocksDB leaves it."""
    folder = Folder(tmp_path, "disk")
    (folder / "a").make()
    for name in ("OPTIONS-7", "CURRENT", "MANIFEST-4", "4.log"):
        (folder.path / "a" / name).write_text("some bytes")
    return folder


class TestReads:
    """A file is read back if it is read before it is changed."""

    def test_what_is_read(self, disk: Folder) -> None:
        """A file that is only opened, listed or looked at is not read."""
        with Reads(disk, TORN) as reads:
            assert reads.names() == frozenset()
            (disk.path / TORN).open("rb").close()
            assert sorted(disk.path.rglob("*"))
            assert disk.files()
            assert (disk.path / "a/CURRENT").read_text() == "some bytes"
            assert reads.names() == {"a/CURRENT"}
            assert (disk.path / TORN).read_text()
            assert reads.names() == {"a/CURRENT", TORN}

    def test_written_first(self, disk: Folder) -> None:
        """A design that has written a file itself has not read what lay there."""
        with Reads(disk, TORN) as reads:
            log = disk.path / "a/4.log"
            log.write_text("anew")
            assert log.read_text() == "anew"
            renamed = disk.path / "a/CURRENT.new"
            renamed.write_text("anew")
            renamed.rename(disk.path / "a/CURRENT")
            assert (disk.path / "a/CURRENT").read_text() == "anew"
            assert reads.names() == frozenset()

    def test_under_another_name(self, disk: Folder) -> None:
        """A file that was moved aside and read there is read."""
        with Reads(disk, TORN) as reads:
            assert (disk.path / TORN).rename(disk.path / "aside").read_text()
            assert reads.names() == {TORN}

    def test_many_reads(self, disk: Folder) -> None:
        """Each file is told once, so that no queue runs full."""
        with Reads(disk, TORN) as reads:
            with (
                (disk.path / TORN).open("rb") as torn,
                (disk.path / "a/CURRENT").open("rb") as other,
            ):
                for _ in range(10_000):
                    os.pread(torn.fileno(), 1, 0)
                    os.pread(other.fileno(), 1, 0)
            assert reads.names() == {"a/CURRENT", TORN}


class TestKnownReads:
    """A file of a kind that was read goes before others."""

    def test_a_kind(self) -> None:
        """Numbers and unique ids do not make a kind."""
        known = KnownReads()
        known.learn(frozenset({"a/CURRENT", "a/MANIFEST-4"}), torn=TORN)

        assert known.rank("a/MANIFEST-12") > known.rank("a/OPTIONS-9")

    def test_unique_ids(self) -> None:
        """An id may have hyphens or none."""
        known = KnownReads()
        known.learn(frozenset({f"waiting-{uuid4().hex}", f"state-{uuid4()}"}), torn=TORN)

        assert known.rank(f"waiting-{uuid4().hex}") == known.rank(f"state-{uuid4()}") == 2

    def test_application_ids(self) -> None:
        """Kafka Streams has a folder for each application, whose id each attempt draws."""
        known = KnownReads()
        known.learn(frozenset({"a/trial-f9919d-9eb1edf4dcf06099-ledger/metadata"}), torn=TORN)

        assert known.rank("a/trial-f9919d-ed186ae3135489fc-ledger/metadata") == 2

    def test_spared(self) -> None:
        """A kind of which a torn file was not read goes after other kinds."""
        known = KnownReads()
        known.learn(frozenset({"state/1.zip", "offsets/1"}), torn="state/2.zip")

        assert known.rank("offsets/7") > known.rank("state/7.zip") > known.rank("sources/1")
