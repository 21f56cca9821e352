"""Probes look at each output of an application."""

from types import SimpleNamespace
from typing import Any

from upheld.history import History
from upheld.history.events import Ends, Record
from upheld.history.marks import Look
from upheld.trial.probes import Probes

ENDS = {"costs": ({0: 1, 1: 2}, {0: 3, 1: 4}), "alerts": ({0: 5, 1: 6}, {0: 7, 1: 8})}
APPLICATION: Any = SimpleNamespace(
    name="app", writes="costs", results=("costs", "alerts"), partitions=2
)


def probes(history: History) -> Probes:
    """Return probes of a broker where two outputs have these ends."""
    recorder: Any = SimpleNamespace(history=history, now_ms=7)
    reading: Any = SimpleNamespace(ends=lambda topic, _partitions: ENDS[topic])
    manifest: Any = SimpleNamespace()
    return Probes(recorder, reading, manifest)


def test_the_ends_are_those_of_the_first_output() -> None:
    """Nothing is recorded if no check looks at this moment."""
    history = History()

    assert probes(history).ends(APPLICATION) == ENDS["costs"]
    assert history.events == []


def test_a_look_records_the_ends_of_all_outputs() -> None:
    """A check of a further output looks for its partitions."""
    history = History()

    assert probes(history).ends(APPLICATION, Look.BEFORE_ZOMBIE) == ENDS["costs"]
    (ends,) = history.of(Ends)
    assert ends.last_stable == {"costs-0": 1, "costs-1": 2, "alerts-0": 5, "alerts-1": 6}
    assert ends.high_watermark == {"costs-0": 3, "costs-1": 4, "alerts-0": 7, "alerts-1": 8}


def test_outputs_are_counted_together() -> None:
    """A new record of any output is one; the input is none."""
    history = History()
    topics = ("costs", "alerts", "orders")
    history.add_all(Record(topic, 0, 0, 0, None, None) for topic in topics)

    assert probes(history).outputs_seen(APPLICATION) == 2
