"""The requests of an application to the broker, as the proxy hears them.

The proxy's thread writes, and the doctor's reads. A request that cannot be read is left out: an
observer never stops what it looks at.
"""

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from upheld.injectors.proxy.frames import Request, TopicKey, UnreadableError, decode
from upheld.injectors.proxy.proxy import Proxy
from upheld.injectors.proxy.rules import Exchange

EARLIEST: Final = -2  # the timestamps of a ListOffsets that ask for an end of a partition
LATEST: Final = -1
COMMITTED_ONLY: Final = 1  # the isolation level read_committed
COMMITS: Final = ("offset_commit", "txn_offset_commit")
# Of these the doctor reads the message; of all others it knows that they were asked.
READ: Final = frozenset(
    {
        "api_versions",
        "metadata",
        "join_group",
        "heartbeat",
        "consumer_group_heartbeat",
        "streams_group_heartbeat",
        "init_producer_id",
        "fetch",
        "list_offsets",
        "create_topics",
        "produce",
        *COMMITS,
    }
)
ANSWERS: Final = frozenset({"metadata", "produce"})  # of which the answer is read too

Place = tuple[str, int]  # a topic and a partition


class Commit(NamedTuple):
    """The offsets of one commit."""

    at_s: float
    api: str
    group: str
    offsets: dict[Place, int]


@dataclass
class Membership:
    """A group that the application joined."""

    protocol: str
    session_timeout_ms: int | None = None  # None: the broker chooses it
    members: set[str] = field(default_factory=set)
    instance_ids: set[str] = field(default_factory=set)


@dataclass
class Wire:
    """All that was heard at one proxy."""

    proxy: Proxy
    groups: dict[str, Membership] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)  # id -> timeout in milliseconds
    isolation: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    first_fetched: dict[Place, int] = field(default_factory=dict)
    looked_for: set[int] = field(default_factory=set)  # timestamps of ListOffsets
    asked: set[str] = field(default_factory=set)  # topics of Metadata
    unknown: set[str] = field(default_factory=set)  # topics that the broker did not have
    created: set[str] = field(default_factory=set)
    written: Counter[str] = field(default_factory=Counter)  # topic -> requests
    outside: set[str] = field(default_factory=set)  # topics that were written in no transaction
    acknowledged: int = 0  # answers to produce requests
    commits: list[Commit] = field(default_factory=list)
    clients: dict[str, str] = field(default_factory=dict)  # client id -> its software
    versions: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def hear(self, exchange: Exchange, request: Request, answer: bytes | None) -> None:
        """Note a request, or the answer to one."""
        if answer is None:
            self.versions[exchange.api].add(exchange.version)
            self.clients.setdefault(exchange.client_id or "", "")
        if exchange.api not in (READ if answer is None else ANSWERS):
            return
        try:
            message: Any = request.decoded() if answer is None else decode(request, answer)[1]
        except UnreadableError:
            return
        if answer is not None:
            self._hear_answer(exchange, message)
        elif exchange.api in COMMITS:
            self._commit(exchange, message)
        else:
            getattr(self, f"_{exchange.api}")(exchange, message)

    @property
    def committed(self) -> dict[Place, int]:
        """The highest offset of each partition that the application asked to commit."""
        found: dict[Place, int] = {}
        for commit in list(self.commits):
            for place, offset in commit.offsets.items():
                found[place] = max(offset, found.get(place, 0))
        return found

    def _hear_answer(self, exchange: Exchange, message: Any) -> None:
        if exchange.api == "produce":
            self.acknowledged += 1
            return
        for topic in message.topics or ():
            if topic.error_code and topic.name:
                self.unknown.add(topic.name)

    def _api_versions(self, exchange: Exchange, message: Any) -> None:
        name = getattr(message, "client_software_name", "")
        version = getattr(message, "client_software_version", "")
        if name:
            self.clients[exchange.client_id or ""] = f"{name} {version}"

    def _metadata(self, _: Exchange, message: Any) -> None:
        self.asked |= {topic.name for topic in message.topics or () if topic.name}

    def _join_group(self, _: Exchange, message: Any) -> None:
        group = self.groups.setdefault(message.group_id, Membership("classic"))
        group.session_timeout_ms = _milliseconds(message.session_timeout)
        self._member(group, message.member_id, getattr(message, "group_instance_id", None))

    def _heartbeat(self, _: Exchange, message: Any) -> None:
        group = self.groups.setdefault(message.group_id, Membership("classic"))
        self._member(group, message.member_id, getattr(message, "group_instance_id", None))

    def _consumer_group_heartbeat(self, _: Exchange, message: Any) -> None:
        group = self.groups.setdefault(message.group_id, Membership("consumer"))
        self._member(group, message.member_id, message.instance_id)

    def _streams_group_heartbeat(self, _: Exchange, message: Any) -> None:
        group = self.groups.setdefault(message.group_id, Membership("streams"))
        self._member(group, message.member_id, message.instance_id)

    def _member(self, group: Membership, member: str, instance: str | None) -> None:
        """Note a member; before its first answer it has no id."""
        group.members |= {member} if member else set()
        group.instance_ids |= {instance} if instance else set()

    def _init_producer_id(self, _: Exchange, message: Any) -> None:
        if message.transactional_id:
            timeout_ms = _milliseconds(message.transaction_timeout)
            self.transactions[message.transactional_id] = timeout_ms

    def _fetch(self, _: Exchange, message: Any) -> None:
        for topic in message.topics:
            name = self._name(topic)
            self.isolation[name].add(int(getattr(message, "isolation_level", 0)))
            for part in topic.partitions:
                self.first_fetched.setdefault((name, part.partition), part.fetch_offset)

    def _list_offsets(self, _: Exchange, message: Any) -> None:
        for topic in message.topics:
            for part in topic.partitions:
                self.looked_for.add(int(part.timestamp))

    def _create_topics(self, _: Exchange, message: Any) -> None:
        self.created |= {topic.name for topic in message.topics}

    def _produce(self, _: Exchange, message: Any) -> None:
        for topic in message.topic_data:
            name = self._name(topic)
            self.written[name] += 1
            if not getattr(message, "transactional_id", None):
                self.outside.add(name)

    def _commit(self, exchange: Exchange, message: Any) -> None:
        offsets = {
            (self._name(topic), part.partition_index): int(part.committed_offset)
            for topic in message.topics
            for part in topic.partitions
        }
        now_s = time.monotonic()
        self.commits.append(Commit(now_s, exchange.api, message.group_id, offsets))

    def _name(self, topic: Any) -> str:
        """Return the name of a topic that a request names, or whose id it names."""
        for attribute in ("name", "topic"):
            if name := getattr(topic, attribute, None):
                return str(name)
        key: TopicKey = getattr(topic, "topic_id", "")
        return self.proxy.topics.get(key, str(key))


def _milliseconds(span: Any) -> int:
    """Return a span of time, as kio reads it, in milliseconds."""
    return round(float(span.total_seconds()) * 1000)
