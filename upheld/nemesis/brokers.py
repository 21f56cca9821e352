"""Deaths of a broker in the middle of a transaction.

A broker that stands alone comes back on the same disk. Of three brokers, another one takes over
the part of the dead one.
"""

import operator
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from uuid import uuid4

from confluent_kafka import KafkaException, Producer

from upheld.brokers.cluster import Cluster
from upheld.brokers.node import SETTINGS
from upheld.history.marks import Happening
from upheld.nemesis.moments import MOMENTS, pause_at
from upheld.trial.application import Application
from upheld.trial.trial import Trial
from upheld.verdicts import HarnessError, Inconclusive, MachineLacks, MarkMissed

CONTROL = b"control"
ANSWER_S = 30.0
MOVED_S = 30.0  # by then another node coordinates the transactions of a dead one
LOGS = int(SETTINGS["transaction.state.log.num.partitions"])
OPEN = "with a transaction open"


def restart(trial: Trial, application: Application) -> None:
    """SIGKILL the broker under an open transaction of instance a, and start it again.

    The instance goes on while the broker is away. Beside its transaction stands one of the
    harness's own, which goes on as well.

    Raises:
        MachineLacks: The broker is not the harness's own.
        Inconclusive: The broker lost the harness's transaction, so it may have lost the design's.
    """
    broker = trial.rig.broker
    reading = trial.reading
    if not broker.ours:
        raise MachineLacks("a cluster of somebody else is not killed")
    with control(trial) as beside:
        evidence = pause_at(trial, application, MOMENTS[OPEN](trial, application))
        beside.begin(0)
        began = time.monotonic()
        broker.kill()
        trial.instances.resume(application)
        broker.revive()
        away_ms = round((time.monotonic() - began) * 1000)
        reading.reconnect()
        beside.commit()
        beside.demand_kept()
    trial.mark(
        Happening.BROKER_DIED,
        away_ms=away_ms,
        open_records=evidence["open_records"],
    )


def move_coordinator(trial: Trial, application: Application) -> None:
    """SIGKILL the coordinator of an open transaction of instance a, then start it.

    The instance goes on, and another node is seen to coordinate its transaction before the dead
    node starts. Beside it stands a transaction of the harness's own with the same coordinator,
    which the new one commits.

    Raises:
        HarnessError: The row runs on one broker alone.
        MarkMissed: No other node is seen to coordinate the design's transaction.
        Inconclusive: The cluster lost the harness's transaction.
    """
    cluster = trial.rig.broker
    reading = trial.reading
    if not isinstance(cluster, Cluster):
        raise HarnessError(
            "one broker alone coordinates everything; the sentence is for a cluster of three"
        )
    with control(trial) as beside:
        evidence = pause_at(trial, application, MOMENTS[OPEN](trial, application))
        producers = {producer for producer, _ in evidence["writers"]}
        transactional_id, old = next(_coordinators(reading.raw.coordinated(), producers), ("", 0))
        own_id = beside.begin(log_of(transactional_id))
        if not {transactional_id, own_id} <= reading.raw.coordinated().get(old, {}).keys():
            raise MarkMissed(
                "no node was seen to coordinate the open transaction, and the harness's own "
                "beside it"
            )
        began = time.monotonic()
        cluster.kill(old)
        new: int | None = None

        def is_moved() -> bool:
            nonlocal new
            known = reading.raw.coordinated()
            new = next(
                (node for node, ids in known.items() if node != old and transactional_id in ids),
                None,
            )
            return new is not None

        try:
            trial.instances.resume(application)
            if not trial.recorder.wait(MOVED_S, is_moved):
                raise MarkMissed(
                    f"no node was seen to coordinate the open transaction after node {old} died"
                )
            after_ms = round((time.monotonic() - began) * 1000)
            beside.commit()
        finally:
            cluster.revive()
            reading.reconnect()
        away_ms = round((time.monotonic() - began) * 1000)
        beside.demand_kept()
    trial.mark(
        Happening.COORDINATOR_MOVED,
        transactional_id=transactional_id,
        old_node=old,
        new_node=new,
        after_ms=after_ms,
        away_ms=away_ms,
        open_records=evidence["open_records"],
    )


def _coordinators(
    coordinated: dict[int, dict[str, int]], producers: set[int]
) -> Iterator[tuple[str, int]]:
    """Yield the transactional id of each of these producers, and its coordinator."""
    for node, ids in coordinated.items():
        yield from ((name, node) for name, producer in ids.items() if producer in producers)


class Control:
    """A transaction of the harness's own, beside that of the design.

    If the broker loses it, the broker may have lost the design's too. For each partition of the
    transaction log an id is ready, so that the design is not held for longer than it must be.
    """

    def __init__(self, trial: Trial) -> None:
        self.topic = f"upheld-control-{uuid4().hex[:8]}"
        self._reading = trial.reading
        self._wait = trial.recorder.wait
        self._reading.create({self.topic: 1})
        # A client waits longer and longer before it looks again for a broker that was away: up to
        # 10 s, if it may.
        settings = self._reading.settings | {"reconnect.backoff.max.ms": 200}
        self._ids = [id_in(log, self.topic) for log in range(LOGS)]
        self._ready = [Producer(settings | {"transactional.id": each}) for each in self._ids]
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda producer: producer.init_transactions(ANSWER_S), self._ready))

    def begin(self, log: int) -> str:
        """Open the transaction with one record, and return its transactional id.

        Args:
            log: The partition of the transaction log that the id is to lie in.
        """
        self._producer = self._ready[log]
        self._producer.begin_transaction()
        self._producer.produce(self.topic, CONTROL)
        self._producer.flush(ANSWER_S)
        return self._ids[log]

    def commit(self) -> None:
        """Commit the transaction.

        Raises:
            Inconclusive: The broker refuses that.
        """
        try:
            self._producer.commit_transaction(ANSWER_S)
        except KafkaException as error:
            raise Inconclusive(
                f"the broker itself lost a transaction when it died: {error.args[0].str()}"
            ) from None

    def demand_kept(self) -> None:
        """Read the record of the transaction.

        Raises:
            Inconclusive: The record is gone.
        """
        try:
            # its marker is written after the answer
            self._wait(ANSWER_S, lambda: operator.eq(*self._reading.ends(self.topic, 1)))
            kept = [
                message.value()
                for message in self._reading.records(self.topic, {0: 0}, committed=True)
            ]
        except KafkaException as error:
            raise Inconclusive(
                f"the broker itself lost a transaction when it died: {error.args[0].str()}"
            ) from None
        if kept != [CONTROL]:
            raise Inconclusive(
                f"the broker itself kept {len(kept)} records of a committed transaction of one"
            )


@contextmanager
def control(trial: Trial) -> Iterator[Control]:
    """Yield a transaction of the harness's own, and delete its topic at the end."""
    made = Control(trial)
    try:
        yield made
    finally:
        trial.reading.delete([made.topic])


def id_in(log: int, stem: str) -> str:
    """Return a transactional id that lies in this partition of the transaction log.

    It begins with the stem. All ids in one partition share their coordinator.
    """
    return next(each for number in count() if log_of(each := f"{stem}-{number}") == log)


def log_of(transactional_id: str) -> int:
    """Return the partition of the transaction log that holds the state of an id.

    The leader of that partition is the coordinator.
    """
    encoded = transactional_id.encode("utf-16-be")
    value = 0
    for (unit,) in struct.iter_unpack(">H", encoded):  # String.hashCode of Java
        value = (31 * value + unit) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return (0 if value == 1 << 31 else abs(signed)) % LOGS
