"""The arithmetic of Kafka's transaction log tells which node coordinates an id.

It also tells what a row may want of a broker. No Kafka is started.
"""

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from upheld.brokers.cluster import Cluster
from upheld.nemesis import brokers
from upheld.nemesis.brokers import id_in, log_of, move_coordinator
from upheld.trial.rig import Rig
from upheld.verdicts import HarnessError, MarkMissed, NotOffered


@pytest.mark.parametrize(
    ("transactional_id", "partition"),
    [
        ("", 0),
        ("a", 1),  # 97
        ("hello", 2),  # 99162322
        ("Aa", 0),  # 2112
        ("BB", 0),  # the same
        ("polygenelubricants", 0),  # the least of all integers, which has no absolute value
        ("é", 1),  # 233
        ("😀", 3),  # 1772899, of two units of UTF-16
    ],
)
def test_an_id_lies_in_the_partition_that_java_gives_it(
    transactional_id: str, partition: int
) -> None:
    """An id lies in the partition of its String.hashCode, of four partitions.

    The hash values beside the ids are known.
    """
    assert log_of(transactional_id) == partition


def test_an_id_is_found_for_each_partition() -> None:
    """For any id of a design, one of ours has the same coordinator."""
    found = [id_in(log, "upheld-control") for log in range(4)]

    assert [log_of(each) for each in found] == [0, 1, 2, 3]
    assert all(each.startswith("upheld-control-") for each in found)


def test_nobody_elses_cluster_loses_a_node() -> None:
    """A row that wants three brokers is not offered on a cluster of others.

    Nothing is started beside it.
    """
    anything: Any = None
    external: Any = SimpleNamespace(ours=False)
    rig = Rig(anything, external, anything, anything, anything, 7, 1.0, anything)

    with pytest.raises(NotOffered, match="no node of somebody else's cluster is killed"):
        rig.on_a_cluster()
    assert rig.cluster is None


def test_one_broker_has_no_coordinator_that_moves() -> None:
    """The sentence without its cluster is a mistake of the specification.

    It is no verdict on a design.
    """
    trial: Any = SimpleNamespace(
        rig=SimpleNamespace(broker=SimpleNamespace(ours=True)), reading=None
    )

    with pytest.raises(HarnessError, match="the sentence is for a cluster of three"):
        move_coordinator(trial, trial)


class Coordinated:
    """A trial on a cluster where nothing is real.

    Node 1 coordinates the design's id and ours, until it is killed.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, follows: dict[int, dict[str, int]]
    ) -> None:
        self.told = list[str]()
        self.marks = list[dict[str, Any]]()
        self.known: dict[int, dict[str, int]] = {1: {"ours": 3, "design": 7}, 2: {}}
        cluster = Cluster({})

        def kill(_: Cluster, number: int) -> None:
            self.told.append(f"kill {number}")
            self.known = follows

        monkeypatch.setattr(Cluster, "kill", kill)
        monkeypatch.setattr(Cluster, "revive", lambda _: self.told.append("revive"))
        monkeypatch.setattr(brokers, "MOMENTS", {brokers.OPEN: lambda *_: None})
        monkeypatch.setattr(
            brokers, "pause_at", lambda *_: {"writers": [(7, 0)], "open_records": 5}
        )
        ours = {name: self.tell(name) for name in ("commit", "demand_kept")}
        monkeypatch.setattr(
            brokers,
            "control",
            lambda _: nullcontext(SimpleNamespace(begin=lambda _: "ours", **ours)),
        )
        raw = SimpleNamespace(coordinated=lambda: self.known)
        self.trial: Any = SimpleNamespace(
            rig=SimpleNamespace(broker=cluster),
            reading=SimpleNamespace(raw=raw, reconnect=self.tell("reconnect")),
            instances=SimpleNamespace(resume=lambda _: self.told.append("resume")),
            recorder=SimpleNamespace(wait=lambda _, reached: reached()),
            mark=lambda code, **evidence: self.marks.append(evidence | {"code": code}),
        )

    def tell(self, what: str) -> Callable[[], None]:
        """Return a function that tells when it is called."""
        return lambda: self.told.append(what)


def test_the_mark_says_from_where_to_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours is committed while the dead node is away, and looked at when it is back."""
    world = Coordinated(monkeypatch, follows={2: {}, 3: {"design": 7}})

    move_coordinator(world.trial, world.trial)

    assert world.told == ["kill 1", "resume", "commit", "revive", "reconnect", "demand_kept"]
    (mark,) = world.marks
    assert (
        mark["code"],
        mark["transactional_id"],
        mark["old_node"],
        mark["new_node"],
        mark["open_records"],
    ) == (
        "coordinator-moved",
        "design",
        1,
        3,
        5,
    )


@pytest.mark.parametrize("follows", [{2: {}, 3: {"ours": 3}}, {1: {"design": 7}, 2: {}}])
def test_no_mark_where_no_other_node_takes_over(
    monkeypatch: pytest.MonkeyPatch, follows: dict[int, dict[str, int]]
) -> None:
    """There is no mark where no other node takes over, or the old one still answers.

    The node comes back all the same.
    """
    world = Coordinated(monkeypatch, follows=follows)

    with pytest.raises(MarkMissed, match="after node 1 died"):
        move_coordinator(world.trial, world.trial)
    assert (world.told, world.marks) == (["kill 1", "resume", "revive", "reconnect"], [])


def test_nobody_is_killed_whose_part_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The open transaction's coordinator has to be seen first."""
    world = Coordinated(monkeypatch, follows={})
    world.known = {1: {"ours": 3, "somebody": 8}, 2: {}}

    with pytest.raises(MarkMissed, match="no node was seen to coordinate the open transaction"):
        move_coordinator(world.trial, world.trial)
    assert (world.told, world.marks) == ([], [])
