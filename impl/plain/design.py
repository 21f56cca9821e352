"""The plain design: the verbs of the protocol, around the loop at work."""

import threading
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from upheld.impl.common.clients import ONE_IN_FLIGHT
from upheld.impl.common.effects import Effects
from upheld.impl.common.election import LOOK_S, Election
from upheld.impl.common.lag import lag
from upheld.impl.common.parameters import check_parameters
from upheld.impl.common.stores import loudly, open_store
from upheld.impl.common.table import Table
from upheld.impl.plain.member import Member
from upheld.impl.plain.programs import PROGRAMS, Branches, Ledger, Place

HELLO: dict[str, Any] = {
    "name": "plain",
    "version": "1",
    "language": "python",
    "programs": list(PROGRAMS),
    "modes": ["at_least_once", "exactly_once"],
    "capabilities": [
        *("reusable", "measure", "lag", "query", "scale", "standby"),
        *("sqlite", "redis", "effects", "dead-letters", "group-protocol"),
    ],
}


class Plain(Member):
    """One process, which has its clients for as long as it works."""

    hello = HELLO
    partitioner = "murmur2_random"  # Kafka's own

    def transactional_id(self) -> str:
        """Return the instance's own transactional id, which is stable over restarts.

        The `init_transactions` of a successor fences the instance that held it. If one instance
        works for all, its successor may be another instance.
        """
        topic = self.start["topics"][self.program.reads[0]]
        if self.election:
            return f"{self.start['application_id']}-{topic}"
        return f"{self.start['application_id']}-{topic}-{self.start['instance']}"

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        """Fence and settle the predecessor, join the group, and load the state.

        The design is ready once it holds partitions. To stand by, it has nothing to load: the table
        is in Kafka, and where the other cluster ended is said later.
        """
        if start.get("standing_by"):
            self.start = start
            return {"type": "standing_by"}
        self.after = {}
        try:
            return self.take_hold(start)
        except KafkaException as error:
            self.give_up(error.args[0])

    def take_hold(self, start: dict[str, Any]) -> dict[str, Any]:
        """Open all clients, and return the fields of `ready` once partitions are held."""
        check_parameters(start["parameters"])
        self.start = start
        self.program = self.programs[start["program"]]()
        self.exactly_once = start["mode"] == "exactly_once"
        if reason := self.unsupported():
            return {"type": "unsupported", "reason": reason}
        self.store_kind = start["parameters"].get("store")
        with loudly(self.store_kind):
            self.store = open_store(start)
        again = {"retry.backoff.ms": 20, "reconnect.backoff.max.ms": 1_000}
        self.client = {"bootstrap.servers": start["bootstrap"], **again, **start["client"]}
        self.output = start["topics"][self.program.writes]
        self.group = f"{start['application_id']}-group"
        self.folder = Path(start["durable_dir"])
        queries = f"{self.group}-queries"
        self.rows = Table(self.client, queries, self.output) if self.program.is_asked else None
        self.refused = None
        self.effects = Effects(start)
        # A second one for the lag: the first answers no other thread while it is polled.
        self.monitor = Consumer(self.client | {"group.id": self.group})
        self.committed = []
        is_alone = start.get("several") and not self.program.is_divided
        self.election = Election(start, self.client) if is_alone else None
        self.is_working = False
        if self.election is None or self.election.leads:
            self.take_up_work()
        return {
            "consumer_group": self.group,
            "transactional_id_prefix": self.transactional_id(),
            "internal_topics": [self.election.topic] if self.election else [],
        }

    def take_up_work(self) -> None:
        """Fence the predecessor, and take the partitions."""
        self.open_producer()
        self.open_consumer()
        if self.election:
            self.take_every_partition()
        else:
            self.join_group()
        self.is_working = True

    def run(self, stopping: threading.Event) -> None:
        """Work until the stop; if another instance works, wait until that is over."""
        while self.election and not (self.is_working or stopping.is_set()):
            if self.election.look(LOOK_S):
                try:
                    self.take_up_work()
                except KafkaException as error:
                    self.give_up(error.args[0])
        if self.is_working:
            super().run(stopping)
        self.monitor.close()
        if self.election:
            self.election.close()

    def unsupported(self) -> str | None:
        """Return why a start is beyond the design; None if it is not."""
        if self.start["parameters"].get("store"):
            is_kept = isinstance(self.program, Ledger) and not self.exactly_once
        else:
            is_kept = not isinstance(self.program, Branches)
        if not is_kept:
            return "a store keeps ledger and branches, the latter always, at_least_once"
        protocol = self.start.get("group_protocol")
        if protocol not in {None, "classic", "consumer"}:
            return f"the group has the protocol classic or consumer, and not {protocol}"
        if protocol and self.start.get("several") and not self.program.is_divided:
            return "one instance works for all, and joins no group"
        return None

    def open_producer(self) -> None:
        """Make the producer; under exactly_once it fences the predecessor."""
        settings: dict[str, Any] = {
            "partitioner": self.partitioner,
            "enable.idempotence": True,
            "linger.ms": 5,
            **ONE_IN_FLIGHT,
        }
        if self.exactly_once:
            settings["transactional.id"] = self.transactional_id()
            settings["transaction.timeout.ms"] = self.start["transaction_timeout_ms"]
        else:
            # A silent connection is given up well before a flush is.
            settings["socket.timeout.ms"] = 10_000
        self.producer = Producer(self.client | settings)
        if self.exactly_once:
            # Once connected, it finds its coordinator at once.
            self.producer.list_topics(self.output, 10)
            self.producer.init_transactions(30)

    def open_consumer(self) -> None:
        """Make the consumer; it holds no partition yet."""
        start = self.start
        settings = {
            "group.id": self.group,
            "isolation.level": self.isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": start["offset_reset"],
            "fetch.wait.max.ms": 50,
            "topic.metadata.refresh.interval.ms": 1000,  # new partitions are heard of
            # The only sign of markers at the end, which no reader is given.
            "enable.partition.eof": True,
        }
        self.consumer = Consumer(self.client | settings | self.member_settings())
        self.in_transaction = False
        self.dirty = False
        self.assigned = False
        self.chunk = []

    def activate(self, after: dict[str, int]) -> dict[str, Any]:
        """Begin where another cluster ended.

        The group of this cluster may still have a member, if it worked here before. So these
        positions are committed by the successor of that member, once it is assigned partitions.
        """
        places = ((*place.rpartition("-")[::2], offset) for place, offset in after.items())
        self.after = {Place(topic, int(number)): offset for topic, number, offset in places}
        try:
            return self.take_hold(self.start | {"standing_by": False})
        except KafkaException as error:
            self.give_up(error.args[0])

    def deactivate(self) -> dict[str, Any]:
        """Say where another cluster may begin: what this one read is committed."""
        return {"type": "deactivated", "emitted_through": self.through}

    def measure(self) -> dict[str, Any]:
        """Count all that the program knows, in rows."""
        held = [each for each in vars(self.program).values() if isinstance(each, dict | set)]
        return {"type": "measured", "size": sum(map(len, held)), "unit": "rows"}

    def lag(self) -> dict[str, Any]:
        """Return the lag of what the group has committed, of its own partitions."""
        return lag(self.monitor, self.committed)

    def query(self, table: str, key: str) -> dict[str, Any]:
        """Answer from the output topic, whatever instance wrote it."""
        if self.rows and table == self.program.writes:
            return self.rows.answer(key)
        return super().query(table, key)
