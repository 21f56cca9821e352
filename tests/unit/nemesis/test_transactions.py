"""A transaction that is open on the first output is seen on all of them."""

from types import SimpleNamespace
from typing import Any

from upheld.nemesis.moments import fate_of, transaction_open

APPLICATION: Any = SimpleNamespace(
    writes="costs",
    results=("costs", "alerts"),
    partitions=1,
    running={"a": None},
    event=SimpleNamespace(topics={}, parameters={"commit_interval_ms": 100}),
)


def batch(producer: int, control: str | None = None) -> Any:
    """Return a batch of a transaction, or the marker of its end."""
    return SimpleNamespace(
        producer_id=producer, producer_epoch=0, transactional=True, control=control
    )


class World:
    """A broker on which producer 7 has a transaction open on both outputs."""

    def __init__(self) -> None:
        self.batches: list[Any] = [batch(7)]
        self.begun: list[tuple[str, dict[int, int]]] = []
        self.trial: Any = SimpleNamespace(
            reading=SimpleNamespace(
                ends=lambda topic, _: ({0: 1}, {0: 3}) if topic == "costs" else ({0: 4}, {0: 5}),
                raw=SimpleNamespace(batches=self._batches),
            ),
            recorder=SimpleNamespace(wait=lambda _seconds, _reached: False),
        )

    def _batches(self, topic: str, begin: dict[int, int]) -> list[tuple[int, Any]]:
        self.begun.append((topic, begin))
        return [(0, each) for each in self.batches]


def test_the_evidence_has_the_ends_of_all_outputs() -> None:
    """A check of a further output asks from where the open transaction began there."""
    evidence = transaction_open(World().trial, APPLICATION).evidence()

    assert evidence
    assert evidence["writers"] == [(7, 0)]
    assert evidence["last_stable"] == {"costs-0": 1, "alerts-0": 4}
    assert evidence["high_watermark"] == {"costs-0": 3, "alerts-0": 5}


def test_the_fate_is_that_on_the_first_output() -> None:
    """Markers are looked for in the partitions of that topic alone."""
    world = World()
    evidence = transaction_open(world.trial, APPLICATION).evidence()
    assert evidence
    world.batches = [batch(7), batch(8, "commit"), batch(7, "abort")]

    assert fate_of(world.trial, APPLICATION, evidence) == "abort"
    assert world.begun[-1] == ("costs", {0: 1})
