"""Where a node's JVM takes its classes from."""

import os
from pathlib import Path

import pytest

from upheld.brokers.classes import flags
from upheld.brokers.java import Java
from upheld.errors import MachineProblem


class Machine:
    """A Java with an archive of its own, a jar, and an empty cache.

    Its node archives at its end.
    """

    def __init__(self, folder: Path) -> None:
        self.jar = folder / "kafka.jar"
        self.runs = 0
        self.jar.touch()
        (folder / "java/lib/server").mkdir(parents=True)
        (folder / "java/lib/server/classes.jsa").touch()
        (folder / "cache/upheld").mkdir(parents=True)
        self.java = Java(folder / "java/bin/java", "17.0.1")

    def node(self, asked: tuple[str, ...]) -> None:
        """Run a node, which leaves an archive where it is told to."""
        self.runs += 1
        Path(asked[0].partition("=")[2]).touch()

    def asked(self) -> tuple[str, ...]:
        """Return the options that a JVM is given."""
        return flags(self.java, [self.jar], self.node)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a machine for the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Machine(tmp_path)


def test_classes_are_archived_once(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """The first start makes the archive and says so.

    All take it, until a jar is newer.
    """
    first = machine.asked()
    second = machine.asked()

    assert first == second
    assert Path(first[0].removeprefix("-XX:SharedArchiveFile=")).exists()
    assert (machine.runs, capsys.readouterr().err.count("keeping Kafka's loaded classes")) == (1, 1)

    later = machine.jar.stat().st_mtime + 100
    os.utime(machine.jar, (later, later))
    machine.asked()
    assert machine.runs == 2


def test_a_java_without_an_archive_of_its_own_makes_none(machine: Machine) -> None:
    """Nothing is tried, and nothing is said to its JVM."""
    (machine.java.home / "lib/server/classes.jsa").unlink()

    assert machine.asked() == ()
    assert machine.runs == 0


def test_what_cannot_be_archived_is_done_without(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing archive is no reason to fail.

    A node that does not start is explained by the next one.
    """

    def fails(_: tuple[str, ...]) -> None:
        raise MachineProblem("no room")

    monkeypatch.setattr(machine, "node", fails)
    assert machine.asked() == ()
    monkeypatch.setattr(machine, "node", lambda _: None)
    assert machine.asked() == ()
