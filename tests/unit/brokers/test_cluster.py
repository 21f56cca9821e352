"""Nodes of a cluster are taken away and come back. No Kafka is started."""

from typing import Any

import pytest

from upheld.brokers.cluster import Cluster


class Node:
    """A node that tells what is done to it."""

    process: object = None

    def __init__(self, number: int, told: list[str]) -> None:
        self._number = number
        self._told = told

    def __getattr__(self, what: str) -> Any:
        if what not in {"kill", "pause", "serve", "ended"}:
            raise AttributeError(what)
        return lambda *_: self._told.append(f"{what} {self._number}")


def test_a_silent_node_is_killed_before_it_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It never reads what was sent to it meanwhile, and its silence is no end."""
    told = list[str]()
    nodes: Any = {number: Node(number, told) for number in (1, 2)}
    cluster = Cluster(nodes)
    monkeypatch.setattr(Cluster, "await_ready", lambda _: told.append("ready"))

    cluster.silence(2)
    assert not cluster.ended(0)
    cluster.revive()

    assert told == ["pause 2", "ended 1", "kill 2", "serve 2", "ready"]
    assert cluster.away == set()
