"""On a cluster of the user's, only what a run has made is ever changed or deleted."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException

from upheld.errors import MachineProblem
from upheld.kafka import admin
from upheld.kafka.admin import Admin
from upheld.verdicts import HarnessError

OWN = "trial-abc123-0123456789abcdef"


class Answer:
    """A future that is answered at once."""

    def __init__(self, error: Exception | None = None, value: object = None) -> None:
        self._error = error
        self._value = value

    def result(self, _timeout: float = 0) -> object:
        """Return the value, or raise."""
        if self._error:
            raise self._error
        return self._value

    def exception(self, _timeout: float = 0) -> Exception | None:
        """Return the error, if any."""
        return self._error


class Cluster:
    """A cluster that does what an admin client asks, and remembers the changes."""

    def __init__(self) -> None:
        self.topics = {"payments", f"{OWN}-older"}
        self.groups = {"billing", f"{OWN}-older"}
        self.busy: list[str] = []  # groups that have members at the first tries
        self.changed: list[str] = []
        self.tells_groups = True

    def list_topics(self, timeout: float) -> Any:
        """Return all topics."""
        assert timeout
        return SimpleNamespace(
            topics={name: SimpleNamespace(partitions=[0]) for name in self.topics}
        )

    def names(self) -> set[str]:
        """Return all groups, or refuse."""
        if not self.tells_groups:
            raise MachineProblem("denied")
        return set(self.groups)

    def create_topics(self, topics: list[Any]) -> dict[str, Answer]:
        """Create topics, but none that is there."""
        found = {}
        for topic in topics:
            there = topic.topic in self.topics
            found[topic.topic] = Answer(KafkaException("exists") if there else None)
            self.topics.add(topic.topic)
        return found

    def delete_topics(self, names: list[str]) -> dict[str, Answer]:
        """Delete topics."""
        self.topics -= set(names)
        return {name: Answer() for name in names}

    def delete_consumer_groups(self, names: list[str]) -> dict[str, Answer]:
        """Delete groups without members."""
        busy = {self.busy.pop()} if self.busy else set[str]()
        self.groups -= set(names) - busy
        return {name: Answer(KafkaException("busy") if name in busy else None) for name in names}

    def _change(self, things: list[Any]) -> dict[int, Answer]:
        self.changed += [str(thing) for thing in things]
        return {number: Answer() for number, _ in enumerate(things)}

    create_partitions = delete_records = incremental_alter_configs = _change


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster with topics and groups of others."""
    return Cluster()


@pytest.fixture
def own(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Admin:
    """Return an administration of the cluster that has reserved an id."""
    raw = SimpleNamespace(fetch=lambda *_: [], close=lambda: None)
    monkeypatch.setattr(admin, "time", SimpleNamespace(monotonic=lambda: 0, sleep=lambda _: None))
    clients = {"admin": cluster, "raw": raw, "groups": cluster}
    monkeypatch.setattr(Admin, "_connect", lambda self: vars(self).update(clients))
    made = Admin("cluster:9092", {})
    made.reserve(OWN, groups_too=True)
    return made


CHANGES: dict[str, Callable[[Admin, str], None]] = {
    "delete": lambda own, topic: own.delete([topic]),
    "delete with an own one": lambda own, topic: own.delete([f"{OWN}-input", topic]),
    "truncate": lambda own, topic: own.truncate({f"{topic}-0": 1}),
    "grow": lambda own, topic: own.grow(topic, 2),
    "limit": lambda own, topic: own.limit(topic, 100),
    "lift a limit": lambda own, topic: own.limit(topic, None),
}
FOREIGN = ["payments", f"{OWN}-older", "trial-abc123-fedcba9876543210-x", "", "payments-0"]


@pytest.mark.parametrize("topic", FOREIGN)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_foreign_is_never_changed(
    cluster: Cluster, own: Admin, change: Callable[[Admin, str], None], topic: str
) -> None:
    """A foreign topic is refused, even if its name contains the id."""
    own.create({f"{OWN}-input": 1})
    before = set(cluster.topics)

    with pytest.raises(HarnessError, match="was not made in this run"):
        change(own, topic)

    assert cluster.topics == before
    assert cluster.changed == []


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_design_made_under_the_id_is_changed(
    cluster: Cluster, own: Admin, change: Callable[[Admin, str], None]
) -> None:
    """It was absent before, so its table can be cut or deleted as well."""
    own.create({f"{OWN}-input": 1})
    cluster.topics.add(f"{OWN}-table")

    change(own, f"{OWN}-table")

    assert cluster.changed or f"{OWN}-table" not in cluster.topics


def test_a_topic_that_could_not_be_created_is_not_ours(cluster: Cluster, own: Admin) -> None:
    """Kafka refused to create it, so it is somebody's."""
    with pytest.raises(KafkaException):
        own.create({"payments": 1})

    with pytest.raises(HarnessError):
        own.delete(["payments"])
    assert "payments" in cluster.topics


def test_the_end_of_an_attempt(cluster: Cluster, own: Admin) -> None:
    """All topics under the id go, declared or not, however many; others stay."""
    own.create({f"{OWN}-input": 1})
    cluster.topics |= {f"{OWN}-{number}" for number in range(3_000)}
    cluster.topics |= {f"changelog__{OWN}--store", "orders"}

    assert len(own.clear(OWN)) == 3_002

    assert cluster.topics == {"payments", f"{OWN}-older", "orders"}


def test_the_end_of_an_attempt_without_a_topic(cluster: Cluster, own: Admin) -> None:
    """An id that was never reserved deletes nothing."""
    before = set(cluster.topics)

    assert own.clear("payments") == []

    assert cluster.topics == before


def test_the_end_of_a_run(cluster: Cluster, own: Admin) -> None:
    """The canary's topic and the groups of designs go as soon as they have no members."""
    own.create({"upheld-canary-1": 1})
    cluster.groups |= {f"{OWN}-group", f"connect-{OWN}", "payroll"}
    cluster.topics.add(f"{OWN}-late")
    cluster.busy = [f"{OWN}-group"]

    assert own.leave() == []

    assert cluster.topics == {"payments", f"{OWN}-older"}
    assert cluster.groups == {"billing", f"{OWN}-older", "payroll"}


def test_what_stays_is_named(cluster: Cluster, own: Admin) -> None:
    """A group that keeps its members is left there."""
    cluster.groups.add(f"{OWN}-group")
    cluster.busy = [f"{OWN}-group"] * 3

    assert own.leave(within_s=-1.0) == [f"group {OWN}-group"]


def test_a_cluster_that_does_not_tell_its_groups(cluster: Cluster, own: Admin) -> None:
    """No group is deleted then, and the topics are."""
    own.create({"upheld-canary-1": 1})
    cluster.tells_groups = False

    assert own.leave() == []
    assert cluster.topics == {"payments", f"{OWN}-older"}
    assert cluster.groups == {"billing", f"{OWN}-older"}


def test_a_table_that_is_not_there(own: Admin) -> None:
    """It has no partitions, and a topic of which it is a prefix is another one."""
    assert own.partitions("payments") == 1
    assert own.partitions("pay", -1.0) == 0
