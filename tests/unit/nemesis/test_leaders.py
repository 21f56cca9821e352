"""A leader of the outputs falls silent, and the design goes on or waits.

No Kafka is started.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from upheld.brokers.cluster import Cluster
from upheld.nemesis import moments
from upheld.nemesis.moments import MOMENTS
from upheld.verdicts import HarnessError, Violated

SILENT = "with a leader of its outputs silent"
LEADERS = {0: 1, 1: 2, 2: 3, 3: 1}
INPUT_ENDS = {"entries-0": 9}


class World:
    """A cluster where nothing is real, and a design that commits now and then.

    Node 2 coordinates the group, and node 1 leads two partitions of the outputs.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, committed: list[int | None]) -> None:
        self.told = list[str]()
        self.committed = committed  # what is asked for, one after the other; the last one stays
        self.leaders = LEADERS
        self.end = {0: 0}
        cluster = Cluster({})
        monkeypatch.setattr(Cluster, "silence", lambda _, node: self.told.append(f"silence {node}"))
        monkeypatch.setattr(Cluster, "revive", lambda _: self.told.append("revive"))
        monkeypatch.setattr(moments, "SILENT_S", 0.05)
        monkeypatch.setattr(moments, "DECIDED_S", 0)
        self.instance: Any = SimpleNamespace(
            is_over=False,
            failed=None,
            resume=lambda: self.told.append("resume"),
            pause=lambda: self.told.append("pause"),
        )
        raw = SimpleNamespace(
            leaders=lambda _: self.leaders, coordinating_node=lambda group: {"group": 2}[group]
        )
        self.trial: Any = SimpleNamespace(
            now_ms=0,
            rig=SimpleNamespace(broker=cluster),
            reading=SimpleNamespace(raw=raw, reconnect=lambda: self.told.append("reconnect")),
            probes=SimpleNamespace(ends=lambda _: (self.end, self.end), committed=self._committed),
            instances=SimpleNamespace(demand_alive=self._demand_alive),
            recorder=SimpleNamespace(wait=_wait),
        )
        self.application: Any = SimpleNamespace(
            running={"a": self.instance},
            writes="balances",
            group="group",
            progress_group="group",
            input=SimpleNamespace(ends=INPUT_ENDS),
        )

    def _committed(self, _: object) -> dict[str, int] | None:
        offset = self.committed.pop(0) if len(self.committed) > 1 else self.committed[0]
        return None if offset is None else {"entries-0": offset}

    def _demand_alive(self, _: object) -> None:
        if self.instance.is_over:
            raise Violated.one("stuck", "it exited with 1 and no `failed`")

    def evidence(self) -> dict[str, Any] | None:
        """Return what is seen of the silence."""
        return MOMENTS[SILENT](self.trial, self.application).evidence()


def _wait(seconds: float, reached: Any) -> bool:
    """Ask ten times, whatever the time; a wait of no time asks for nothing."""
    return seconds > 0 and any(reached() for _ in range(10))


def test_it_has_come_with_the_first_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first output nothing can lack an acknowledgement."""
    world = World(monkeypatch, [0])
    moment = MOMENTS[SILENT](world.trial, world.application)

    assert not moment.glimpse()
    world.end = {0: 1}
    assert moment.glimpse()


def test_the_node_that_leads_most_falls_silent_until_two_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The instance goes on meanwhile, and stands still when the node comes back."""
    world = World(monkeypatch, [3, 3, 4, 4, 5, 6])

    assert world.evidence() == {
        "node": 1,
        "partitions": ["balances-0", "balances-3"],
        "silent_ms": 0,
        "commits": 2,
        "committed_before": {"entries-0": 3},
        "committed": {"entries-0": 5},
    }
    assert world.told == ["silence 1", "resume", "pause", "revive", "reconnect"]


def test_a_design_that_has_committed_all_of_its_input_goes_on_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would be given time to send what waits to the next leader."""
    world = World(monkeypatch, [3, INPUT_ENDS["entries-0"], INPUT_ENDS["entries-0"] + 1])
    found = world.evidence()

    assert found
    assert (found["commits"], found["committed"]) == (1, INPUT_ENDS)


@pytest.mark.parametrize("offset", [3, None], ids=["it waits", "its offsets say nothing"])
def test_no_commit_is_an_outcome(monkeypatch: pytest.MonkeyPatch, offset: int | None) -> None:
    """A design that waits for all acknowledgements is struck in its wait."""
    world = World(monkeypatch, [offset])
    if offset is None:
        world.application.progress_group = None
    found = world.evidence()

    assert found
    assert (found["commits"], found["committed"]) == (0, found["committed_before"])


def test_the_coordinator_of_the_group_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing could be committed without it, whatever it leads."""
    world = World(monkeypatch, [3])
    world.leaders = {0: 2, 1: 2, 2: 2, 3: 3}
    found = world.evidence()

    assert found
    assert (found["node"], found["partitions"]) == (3, ["balances-3"])


@pytest.mark.parametrize("leaders", [{0: 2, 1: 2}, {0: 1, 1: 1}])
def test_no_node_is_silenced_without_which_nothing_goes_on(
    monkeypatch: pytest.MonkeyPatch, leaders: dict[int, int]
) -> None:
    """The coordinator is none, and neither is a node that leads all of the outputs."""
    world = World(monkeypatch, [3])
    world.leaders = leaders

    assert world.evidence() is None
    assert world.told == []


def test_an_input_that_is_done_gives_no_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left to commit in the silence."""
    world = World(monkeypatch, [INPUT_ENDS["entries-0"]])

    assert world.evidence() is None
    assert world.told == []


def test_offsets_that_are_not_known_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones that are known would pass for a commit."""
    world = World(monkeypatch, [None, 3])

    assert world.evidence() is None
    assert world.told == []


def test_a_loud_stop_ends_the_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A design may give a silent node up; it is killed where it is."""
    world = World(monkeypatch, [3])
    world.instance.is_over = True
    world.instance.failed = SimpleNamespace(kind="storage", message="no acknowledgement")

    found = world.evidence()

    assert found
    assert found["said"] == "storage: no acknowledgement"
    assert world.told[-2:] == ["revive", "reconnect"]


def test_an_end_without_a_word_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what it is elsewhere, and the node comes back all the same."""
    world = World(monkeypatch, [3])
    world.instance.is_over = True

    with pytest.raises(Violated, match="no `failed`"):
        world.evidence()
    assert world.told == ["silence 1", "resume", "revive", "reconnect"]


def test_one_broker_leads_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence without its cluster is a mistake of the specification."""
    world = World(monkeypatch, [3])
    world.trial.rig.broker = SimpleNamespace(ours=True)

    with pytest.raises(HarnessError, match="the sentence is for a cluster of three"):
        MOMENTS[SILENT](world.trial, world.application)
