import struct
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from upheld.errors import MachineProblem
from upheld.kafka.batches import HEADER, BatchHeader, is_left_open, parse
from upheld.kafka.connection import Coordinator
from upheld.kafka.groups import Groups
from upheld.kafka.offsets import Committed
from upheld.kafka.raw import RawClient

TRANSACTIONAL = 0x10
CONTROL = 0x20
COMPRESSED = 0x03


def varint(number: int) -> bytes:
    """Return a zigzag varint, as records use them."""
    number = number << 1 if number >= 0 else (-number << 1) - 1
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


class Writer(NamedTuple):
    """The producer of a batch."""

    producer: int
    epoch: int


NO_WRITER = Writer(-1, -1)


def batch(
    base: int, count: int, records: bytes, *, attributes: int = 0, writer: Writer = NO_WRITER
) -> bytes:
    """Return one record batch of the second format."""
    length = HEADER.size - 12 + len(records)
    fields = (base, length, 0, 2, 0, attributes, count - 1, 0, 0, *writer, -1, count)
    return HEADER.pack(*fields) + records


def marker(base: int, kind: int, *, timestamp_delta: int = 0) -> bytes:
    """Return a control batch: one record whose key is version and type.

    Type 0 is abort, and 1 is commit.
    """
    key = struct.pack(">hh", 0, kind)
    value = struct.pack(">hi", 0, 5)
    body = (
        b"\0"
        + varint(timestamp_delta)
        + varint(0)
        + varint(len(key))
        + key
        + varint(len(value))
        + value
        + varint(0)
    )
    record = varint(len(body)) + body
    return batch(base, 1, record, attributes=TRANSACTIONAL | CONTROL, writer=Writer(7, 3))


def test_normal() -> None:
    """A batch of no producer id is no transaction.

    Compressed bytes are not looked into.
    """
    found = list(parse(batch(5, 3, b"\xff" * 40, attributes=COMPRESSED)))

    assert found == [BatchHeader(5, 7, -1, -1, transactional=False, control=None)]


def test_transactional() -> None:
    """Producer id, epoch and the flag tell who wrote it."""
    found = list(
        parse(batch(0, 2, b"records", attributes=TRANSACTIONAL, writer=Writer(1 << 40, 9)))
    )

    assert found == [BatchHeader(0, 1, 1 << 40, 9, transactional=True, control=None)]


def test_idempotent() -> None:
    """A producer id alone makes no transaction."""
    (found,) = parse(batch(0, 1, b"record", writer=Writer(7, 0)))

    assert (found.producer_id, found.transactional) == (7, False)


@pytest.mark.parametrize(("kind", "name"), [(0, "abort"), (1, "commit")])
@pytest.mark.parametrize("timestamp_delta", [0, 1, 300, 1 << 40, -1])
def test_control(kind: int, name: str, timestamp_delta: int) -> None:
    """The kind of a marker is read behind varints of any width."""
    found = list(parse(marker(8, kind, timestamp_delta=timestamp_delta)))

    assert found == [BatchHeader(8, 8, 7, 3, transactional=True, control=name)]


def three() -> tuple[bytes, list[BatchHeader]]:
    """Return a transaction and its marker, and one record behind it."""
    data = (
        batch(0, 2, b"ab", attributes=TRANSACTIONAL, writer=Writer(7, 3))
        + marker(2, 1)
        + batch(3, 1, b"c")
    )
    return data, [
        BatchHeader(0, 1, 7, 3, transactional=True, control=None),
        BatchHeader(2, 2, 7, 3, transactional=True, control="commit"),
        BatchHeader(3, 3, -1, -1, transactional=False, control=None),
    ]


def test_several() -> None:
    """Batches stand one behind the other."""
    data, expected = three()

    assert list(parse(data)) == expected


def test_truncated() -> None:
    """A last batch that is cut short anywhere is not read.

    A marker without its kind would pass for an output.
    """
    data, expected = three()
    ends = [HEADER.size + 2, HEADER.size + 2 + len(marker(2, 1)), len(data)]

    for cut in range(len(data)):
        assert list(parse(data[:cut])) == expected[: sum(end <= cut for end in ends)]


def test_nothing() -> None:
    """An empty answer holds no batch."""
    assert list(parse(b"")) == []


def header(producer_id: int, control: str | None = None) -> BatchHeader:
    """Return a batch of this producer's, or its marker."""
    return BatchHeader(0, 0, producer_id, 0, transactional=True, control=control)


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        ([], False),
        ([header(7)], True),
        ([header(7), header(7)], True),
        ([header(8)], False),
        ([header(7), header(8)], False),
        ([header(7), header(9), header(9, "abort")], False),
        ([header(7), header(9, "abort")], True),
        ([header(7), header(7, "commit")], False),
    ],
)
def test_what_a_dead_writer_left_open(above: list[BatchHeader], expected: bool) -> None:
    """Producer 7 is undecided, so all open records are its own.

    If not, readers may still come to see some.
    """
    assert is_left_open(above, {7}) is expected


class Nodes:
    """A cluster of nodes 1 to 3 that lead partitions 0 to 2.

    Some nodes are dead, and metadata may be older than the truth.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.dead = set[int]()
        self.leads = {0: 1, 1: 2, 2: 3}
        self.believed = [self.leads]  # what metadata says, the last word for good
        self.coordinator = 2
        self.group_error = 0
        self.is_unstable = False
        self.asked = list[dict[int, int]]()  # of a Fetch: partition -> offset
        self.ids = {1: {"one": 7}, 2: {"two": 8, "another": 9}, 3: {}}
        monkeypatch.setattr(
            "upheld.kafka.raw.RawConnection", lambda address, _: _Node(self, int(address[-1]))
        )
        self.wires = RawClient("no:1,no:2,no:3", {})


class _Node:
    is_closed = False

    def __init__(self, nodes: Nodes, number: int) -> None:
        self._nodes = nodes
        self._number = number
        self.address = f"no:{number}"
        self._demand_alive()

    def _demand_alive(self) -> None:
        if self._number in self._nodes.dead:
            raise MachineProblem(f"node {self._number} does not answer")

    def close(self) -> None:
        pass

    def metadata(self, *topics: str) -> Any:
        self._demand_alive()
        believed = self._nodes.believed
        leaders = (believed.pop(0) if len(believed) > 1 and topics else believed[0]).items()
        brokers = [
            SimpleNamespace(node_id=n, host="no", port=n)
            for n in (1, 2, 3)
            if n not in self._nodes.dead
        ]
        partitions = [SimpleNamespace(partition_index=p, leader_id=n) for p, n in leaders]
        return SimpleNamespace(brokers=brokers, topics=[SimpleNamespace(partitions=partitions)])

    def fetch(self, _: str, offsets: dict[int, int], __: int) -> dict[int, Any]:
        self._demand_alive()
        self._nodes.asked.append(dict(offsets))
        errors = {p: 0 if self._nodes.leads[p] == self._number else 6 for p in offsets}
        errors |= {p: 1 for p, offset in offsets.items() if offset > p and not errors[p]}
        return {
            p: SimpleNamespace(error_code=e, high_watermark=p, last_stable_offset=p)
            for p, e in errors.items()
        }

    def coordinator(self, _: str) -> Coordinator:
        self._demand_alive()
        number = self._nodes.coordinator
        return Coordinator(0 if number else 15, f"no:{number}")

    def committed(self, _: str, topics: dict[str, int], *, stable: bool) -> Committed:
        self._demand_alive()
        error = 0 if self._nodes.coordinator == self._number else 16
        unstable = frozenset({88} if stable and self._nodes.is_unstable else ())
        places = {(topic, p): p - 1 for topic, count in topics.items() for p in range(count)}
        return Committed(self._nodes.group_error or error, {} if error else places, unstable)

    def transactions(self, *_: str) -> Any:
        self._demand_alive()
        known = self._nodes.ids[self._number].items()
        return [
            SimpleNamespace(transactional_id=name, producer_id=producer) for name, producer in known
        ]


def test_each_partition_is_asked_of_its_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers of three nodes are one, and what each of them coordinates too."""
    wires = Nodes(monkeypatch).wires

    assert wires.ends("topic", {0: 0, 1: 0, 2: 0}) == ({0: 0, 1: 1, 2: 2}, {0: 0, 1: 1, 2: 2})
    assert wires.transactional_ids() == {"one", "two", "another"}
    assert wires.undecided() == {7, 8, 9}


def test_ends_are_asked_for_where_a_log_ended_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end is asked for at the last known end, so that no records come with it.

    If the log is shorter now, it is asked for from the beginning.
    """
    nodes = Nodes(monkeypatch)
    first = nodes.wires.ends("topic", {0: 0, 2: 0})
    nodes.asked.clear()

    assert nodes.wires.ends("topic", {0: 0, 2: 0}) == first
    assert nodes.asked == [{0: 0}, {2: 2}]
    nodes.asked.clear()
    nodes.wires._ends["topic"][2] = 9
    assert nodes.wires.ends("topic", {2: 0}) == ({2: 2}, {2: 2})
    assert nodes.asked == [{2: 9}, {2: 0}]


def test_the_nodes_of_a_topic_and_of_a_group_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the leaders is a new one; a partition may have no leader."""
    nodes = Nodes(monkeypatch)

    assert nodes.wires.leaders("topic") == {0: 1, 1: 2, 2: 3}
    assert nodes.wires.coordinating_node("group") == 2
    nodes.dead = {3}
    nodes.believed = [{0: 2, 1: 2, 2: 3}]
    assert nodes.wires.leaders("topic") == {0: 2, 1: 2}


def test_another_leader_is_found_when_one_has_died_or_leads_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the other nodes do not know it yet; the answers that came are kept."""
    nodes = Nodes(monkeypatch)
    nodes.wires.ends("topic", {0: 0, 1: 0, 2: 0})

    nodes.dead = {3}
    nodes.leads = {0: 2, 1: 2, 2: 1}
    nodes.believed = [{0: 2, 1: 2, 2: 3}, {0: 2, 1: 2}, nodes.leads]

    assert nodes.wires.ends("topic", {0: 0, 1: 0, 2: 0})[1] == {0: 0, 1: 1, 2: 2}
    assert nodes.wires.coordinated() == {1: {"one": 7}, 2: {"two": 8, "another": 9}}


def test_a_partition_without_a_leader_and_a_cluster_without_a_node_are_the_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first is waited for, the second has nobody to wait for."""
    nodes = Nodes(monkeypatch)
    nodes.believed = [{0: 1}]
    monkeypatch.setattr("upheld.kafka.raw.LED_S", 0.05)

    with pytest.raises(
        MachineProblem, match=r"^topic topic has partitions without a leader after 0\.05 s"
    ):
        nodes.wires.ends("topic", {0: 0, 1: 0})
    nodes.dead = {1, 2, 3}
    with pytest.raises(MachineProblem, match="does not answer"):
        nodes.wires.ends("topic", {0: 0})


def test_a_group_is_asked_for_at_its_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator tells the committed offsets of a group, and 0 if there is none.

    If asked so, it tells nothing while a transaction may still change them.
    """
    nodes = Nodes(monkeypatch)

    assert Groups(nodes.wires).committed("group", {"topic": 3}, stable=True) == {
        "topic-0": 0,
        "topic-1": 0,
        "topic-2": 1,
    }
    nodes.is_unstable = True
    assert Groups(nodes.wires).committed("group", {"topic": 3}, stable=True) is None
    assert Groups(nodes.wires).committed("group", {"topic": 1}, stable=False) == {"topic-0": 0}


@pytest.mark.parametrize("has_died", [True, False], ids=["it has died", "it hands over"])
def test_a_group_that_moves_is_found_again(monkeypatch: pytest.MonkeyPatch, has_died: bool) -> None:
    """Nothing is known until another node has the group; then that is asked."""
    nodes = Nodes(monkeypatch)
    Groups(nodes.wires).committed("group", {"topic": 1}, stable=True)
    if has_died:
        nodes.dead = {2}
    nodes.coordinator = 0

    for _ in range(3):
        assert Groups(nodes.wires).committed("group", {"topic": 1}, stable=True) is None
    nodes.coordinator = 3
    assert Groups(nodes.wires).committed("group", {"topic": 1}, stable=True) == {"topic-0": 0}


def test_a_connection_that_was_cut_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt in the middle of an answer has closed it."""
    nodes = Nodes(monkeypatch)
    cut = nodes.wires.coordinator_of("group")
    assert nodes.wires.coordinator_of("group") is cut

    monkeypatch.setattr(cut, "is_closed", True)

    assert nodes.wires.coordinator_of("group") is not cut


def test_a_group_that_is_being_loaded_is_waited_for_and_another_refusal_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loading of a group passes; another refusal is told to the broker's user.

    It is told in Kafka's word, or as a number that has none.
    """
    nodes = Nodes(monkeypatch)
    nodes.group_error = 14
    assert Groups(nodes.wires).committed("group", {"topic": 1}, stable=True) is None
    for error, name in ((30, "group_authorization_failed"), (9999, "9999")):
        nodes.group_error = error
        with pytest.raises(MachineProblem, match=rf"^the broker says of the group group: {name}$"):
            Groups(nodes.wires).committed("group", {"topic": 1}, stable=True)
