"""Single looks at an application: its topics, its instances and its store."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, inf

from pydantic import TypeAdapter, ValidationError

from upheld.checks.prefix import reached
from upheld.checks.timing import waits_of
from upheld.checks.view import view_of
from upheld.history import History, events
from upheld.history.marks import Look
from upheld.kafka.batches import is_left_open
from upheld.kafka.consumers import Position
from upheld.kafka.reader import recorded
from upheld.kafka.reading import Reading
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Failed, Lagging, Measured, NotReady, Value
from upheld.supervisor.host import own_bytes
from upheld.trial.application import Application
from upheld.trial.queried import note_keys, table_role
from upheld.trial.recorder import Recorder
from upheld.verdicts import AdapterBreach, Inconclusive, NotOffered, Undeclared

LAG_EVERY_MS = 100
MOST_EFFECT_BYTES = 256 << 20
SHOWN_BYTES = 80
EFFECT: TypeAdapter[tuple[str | None, str | None]] = TypeAdapter(tuple[str | None, str | None])
BLIND_MS = 1_500  # at most so much later than it became visible, a record is seen
SHARES = {"50 %": 0.5, "99 %": 0.99, "99.99 %": 0.9999}


@dataclass(frozen=True)
class Probes:
    """Looks at the applications of one attempt; each asks once, and waits for nothing."""

    recorder: Recorder
    reading: Reading
    manifest: Manifest

    # --- the outputs

    def observe(self, application: Application) -> None:
        """Record the outputs that have become visible, and the batches that they came in."""
        sight = application.sight
        now_ms = self.recorder.now_ms
        if sight.observed_ms is not None:
            sight.blind_ms = max(sight.blind_ms or 0, now_ms - sight.observed_ms)
            sight.observed_ms = now_ms
        for topic in application.outputs:
            self._look_at_output(application, topic)

    def _look_at_output(self, application: Application, topic: str) -> None:
        position = application.position(topic, committed=True)
        new = self.reading.records(topic, position, committed=True)
        seen_ms = self.recorder.now_ms
        self.recorder.history.add_all(recorded(new, lambda _partition, _offset: seen_ms))
        table = table_role(application) if application.event.contract else ""
        if table and topic == application.event.topics[table]:
            note_keys(application, (message.key() for message in new))
        position = application.position(f"batches of {topic}", committed=True)
        for partition, batch in self.reading.raw.batches(topic, position):
            self.recorder.history.add(
                events.Batch(
                    topic=topic,
                    partition=partition,
                    base_offset=batch.base_offset,
                    last_offset=batch.last_offset,
                    producer_id=batch.producer_id,
                    producer_epoch=batch.producer_epoch,
                    transactional=batch.transactional,
                    control=batch.control,
                )
            )

    def outputs_seen(self, application: Application) -> int:
        """Return how many visible outputs the history has."""
        topics = set(application.results)
        return sum(
            record.topic in topics and record.visible
            for record in self.recorder.history.of(events.Record)
        )

    def ends(self, application: Application, look: Look | None = None) -> tuple[Position, Position]:
        """Return last stable offsets and high watermarks of the first output topic.

        Those of all outputs are recorded if a check is to look at this moment.
        """
        stable, end = self.reading.ends(application.writes, application.partitions)
        if look:
            last_stable, high_watermark = with_further(self.reading, application, stable, end)
            self.recorder.history.add(
                events.Ends(
                    at_ms=self.recorder.now_ms,
                    application=application.name,
                    look=look,
                    reason=look.text,
                    last_stable=last_stable,
                    high_watermark=high_watermark,
                )
            )
        return stable, end

    def all_decided(self, application: Application) -> bool:
        """Return whether no transaction is open on any of the outputs."""
        ends = (self.reading.ends(topic, application.partitions) for topic in application.outputs)
        return all(stable == end for stable, end in ends)

    def is_left_open(self, application: Application) -> bool:
        """Return whether all invisible outputs are of transactions without an outcome."""
        above = []
        for topic in application.outputs:
            stable, _ = self.reading.ends(topic, application.partitions)
            above += [batch for _, batch in self.reading.raw.batches(topic, stable)]
        return is_left_open(above, self.reading.raw.undecided())

    # --- the consumer group

    def demand_group(self, application: Application, what: str) -> None:
        """Raise NotOffered if the design names no consumer group, which alone shows this.

        A design whose offsets mean nothing has declared as much.
        """
        if application.group is None:
            said = f"{self.manifest.name} names no consumer group, so nobody can see {what}"
            raise (NotOffered if self.manifest.progress == "none" else Undeclared)(said)

    def demand_offsets(self, application: Application, what: str) -> None:
        """Raise NotOffered if no offsets in Kafka say how far the input is read."""
        self.demand_group(application, what)
        if application.progress == "none":
            raise NotOffered(
                f"the offsets of {self.manifest.name} are information, so nobody can see {what} "
                '(progress = "none")'
            )

    def committed(self, application: Application, *, stable: bool = True) -> events.Offsets | None:
        """Return the committed offsets that say: outputs are done to here.

        There are none if the design names no group, or keeps this truth elsewhere. If only stable
        ones are asked for, there are none while a transaction may still change them.
        """
        if application.progress_group is None:
            return None
        return self.offsets(application, stable=stable)

    def offsets(self, application: Application, *, stable: bool = True) -> events.Offsets | None:
        """Return the committed offsets of the consumer group, whatever they say.

        They are topic-partition -> offset. There are none if the design names no group.
        """
        if application.group is None:
            return None
        return self.reading.groups.committed(application.group, application.commits, stable=stable)

    def reached(self, application: Application) -> events.Offsets:
        """Return the offsets after the last input whose outcome is visible."""
        self.observe(application)
        furthest = reached(view_of(self.recorder.history, application.name))
        return {place: furthest.get(place, 0) for place in application.places}

    # --- the word of the instances

    def query(self, application: Application, key: str) -> None:
        """Ask every instance for a key of its table.

        Records each answer, and how far readers of committed data see just after it.
        """
        if "query" not in self.manifest.capabilities:
            return
        application.asked += 1
        for name, instance in application.running.items():
            reply = instance.query(table_role(application), key)
            if isinstance(reply, Failed):  # the instance gives up: the monitor looks for that
                continue
            if not isinstance(reply, Value | NotReady):
                raise AdapterBreach(f"{self.manifest.name} answered query with an error: {reply}")
            stable, end = self.ends(application)
            last_stable, _ = with_further(self.reading, application, stable, end)
            self.recorder.history.add(
                events.Answer(
                    at_ms=self.recorder.now_ms,
                    application=application.name,
                    name=name,
                    key=key.encode(),
                    ready=isinstance(reply, Value),
                    value=reply.value if isinstance(reply, Value) else None,
                    stable=last_stable,
                )
            )

    def ask_lag(self, application: Application) -> None:
        """Ask every instance how far it is behind, and Kafka for its offsets; record both."""
        application.lag_due_ms = self.recorder.now_ms + LAG_EVERY_MS
        for name, instance in application.running.items():
            asked_ms = self.recorder.now_ms
            reply = instance.lag()
            if isinstance(reply, Failed):  # the instance gives up: the monitor looks for that
                continue
            if not isinstance(reply, Lagging):
                raise AdapterBreach(f"{self.manifest.name} answered lag with an error: {reply}")
            committed = self.offsets(application, stable=False)
            ends = self.input_ends(application)
            if committed is not None:
                self.recorder.history.add(
                    events.Lag(
                        at_ms=asked_ms,
                        application=application.name,
                        name=name,
                        offsets=reply.offsets,
                        committed=committed,
                        high_watermark=ends,
                    )
                )

    def input_ends(self, application: Application) -> events.Offsets:
        """Return the high watermarks of the inputs that are committed."""
        ends: events.Offsets = {}
        for topic, partitions in application.commits.items():
            ends |= _by_place(topic, self.reading.ends(topic, partitions)[1])
        return ends

    def measure(self, application: Application, name: str) -> Measured:
        """Ask an instance how much state it holds, and return its answer.

        Raises:
            AdapterBreach: It answered with an error, with nothing, or in another unit than before.
        """
        reply = application.running[name].measure()
        if not isinstance(reply, Measured):
            raise AdapterBreach(
                f"{self.manifest.name} answered measure with {reply.type}: {reply.message}"
            )
        first = self.first_size(application)
        if not reply.size or (first and first.unit != reply.unit):
            sizes = f"{reply.size} {reply.unit}"
            if first:
                sizes += f" after {first.size} {first.unit}"
            raise AdapterBreach(
                f"{self.manifest.name} measures {sizes}; expected one unit, and more than nothing"
            )
        return reply

    def first_size(self, application: Application) -> events.Measured | None:
        """Return the first record of how much state there is, if any."""
        sizes = self.recorder.history.of(events.Measured)
        return next((each for each in sizes if each.application == application.name), None)

    # --- beside Kafka

    def weigh(self, application: Application) -> None:
        """Record the bytes that the processes of instance a have in memory, and no others.

        An instance that has stopped loudly has none.

        Raises:
            Inconclusive: There is nothing to measure, which would look like little memory.
        """
        instance = application.running.get("a")
        size_bytes = own_bytes(instance.pids()) if instance else 0
        if instance and not size_bytes:
            raise Inconclusive(f"the memory of {self.manifest.name} cannot be measured")
        self.recorder.history.add(
            events.Memory(
                at_ms=self.recorder.now_ms, application=application.name, size_bytes=size_bytes
            )
        )

    def look_at_store(self, application: Application) -> None:
        """Record the rows of the store, and the writes to it since the last look."""
        store = application.store
        assert store
        rows = tuple(store.rows())
        writes = tuple(
            (self.recorder.now_ms - round(1000 * ago_s), stage, key)
            for ago_s, stage, key in store.writes()
        )
        self.recorder.history.add(
            events.Stored(
                at_ms=self.recorder.now_ms, application=application.name, rows=rows, writes=writes
            )
        )

    def look_at_effects(self, application: Application) -> None:
        """Record the side effects outside of Kafka, if the scenario asks for any."""
        if not application.event.parameters.get("effects"):
            return
        content = (application.disks / "durable").read("effects", MOST_EFFECT_BYTES)
        lines = tuple(self._effect(line) for line in content.split(b"\n") if line)
        self.recorder.history.add(
            events.Told(at_ms=self.recorder.now_ms, application=application.name, lines=lines)
        )

    def _effect(self, line: bytes) -> tuple[str | None, str | None]:
        """Return key and value of a line that a design has told.

        Raises:
            AdapterBreach: The line is no pair of texts.
        """
        try:
            return EFFECT.validate_json(line)
        except ValidationError:
            raise AdapterBreach(
                f"{self.manifest.name} wrote {line[:SHOWN_BYTES]!r} to the file effects; "
                "expected a line [key, value] of JSON, both as text"
            ) from None

    # --- the broker as a whole

    def look_at_names(self) -> None:
        """Record every topic, consumer group and transactional id on the broker."""
        topics, groups, ids = self.reading.names()
        self.recorder.history.add(
            events.Names(
                at_ms=self.recorder.now_ms, topics=topics, groups=groups, transactional_ids=ids
            )
        )

    def look_at_footprint(self, application: Application, declared: set[str]) -> None:
        """Record each topic that the design keeps on the broker beside the declared ones.

        Of each topic, the records that the table has as well are counted as repeated.

        Args:
            application: The application whose topics are read.
            declared: The topics that the harness made, which are not the design's own.
        """
        self.observe(application)
        outputs = {
            (record.key, record.value)
            for record in self.recorder.history.of(events.Record)
            if record.topic == application.writes
        }
        replaced = None  # the topic made for the table, where the design has one of its own
        if application.table is not None:
            replaced = application.event.topics[application.program.writes]
        for topic, partitions in self.reading.sizes(application.event.application_id).items():
            if topic in declared and topic != replaced:
                continue
            start = dict.fromkeys(range(partitions), 0)
            records = self.reading.records(topic, start, committed=True)
            repeated = 0
            if topic != application.writes:
                repeated = sum((record.key(), record.value()) in outputs for record in records)
            self.recorder.history.add(
                events.Kept(
                    at_ms=self.recorder.now_ms,
                    application=application.name,
                    topic=topic,
                    partitions=partitions,
                    records=len(records),
                    size_bytes=sum(
                        len(record.key() or b"") + len(record.value() or b"") for record in records
                    ),
                    repeated=repeated,
                )
            )


def with_further(
    reading: Reading, application: Application, stable: Position, end: Position
) -> tuple[events.Offsets, events.Offsets]:
    """Return last stable offsets and high watermarks of all outputs, by place.

    Args:
        reading: Reads the ends of the outputs beside the first one.
        application: The application whose outputs they are.
        stable: The last stable offsets of the first output, as they were seen.
        end: Its high watermarks, as they were seen then.
    """
    last_stable = _by_place(application.writes, stable)
    high_watermark = _by_place(application.writes, end)
    for topic in application.results[1:]:
        further_stable, further_end = reading.ends(topic, application.partitions)
        last_stable |= _by_place(topic, further_stable)
        high_watermark |= _by_place(topic, further_end)
    return last_stable, high_watermark


def _by_place(topic: str, offsets: Position) -> events.Offsets:
    """Name the partitions of a topic in full: topic-partition -> offset."""
    return {f"{topic}-{partition}": offset for partition, offset in offsets.items()}


def waits_ms(history: History, applications: Iterable[Application]) -> dict[str, int]:
    """Return latency percentiles (share to milliseconds) from append to visibility.

    There are none if the outputs were not observed all along.
    """
    fed = [
        application.name
        for application in applications
        if application.sight.blind_ms is not None
        and application.sight.blind_ms <= BLIND_MS
        and not application.program.merged
        and not application.program.beside
    ]
    waits = sorted(
        wait_ms for name in fed for wait_ms, _ in waits_of(history, name) if wait_ms < inf
    )
    return {
        name: round(waits[ceil(share * len(waits)) - 1]) for name, share in SHARES.items() if waits
    }
