"""Hand-written histories that read as a story.

Entries come in, outputs go out, an instance is killed, a position is committed, and a check judges.
No broker and no design is asked: a story writes down what the harness would have read back from the
log.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from upheld.checks import CHECKS
from upheld.generators.envelope_pb2 import Envelope, Hop, Posting
from upheld.history import History
from upheld.history.digest import RunningDigest
from upheld.history.events import (
    Answer,
    AnyEvent,
    Application,
    Batch,
    Begun,
    Claim,
    Committed,
    Ended,
    Ends,
    InputRested,
    Instance,
    Kept,
    Mark,
    Memory,
    Names,
    Record,
    Stored,
)
from upheld.history.marks import Happening
from upheld.programs import DEAD_LETTERS, PROGRAMS
from upheld.verdicts import Anomaly

EPOCH_MS = 1_700_000_000_000
Position = tuple[str, int, int] | tuple[str, int, int, bytes]  # topic, partition, offset, topic id
Headers = tuple[tuple[str, bytes | None], ...]
Found = tuple[str, str | None, str | None]  # name, key, input position


class _Log:
    """The events of one application in a history, and the next offset of each partition."""

    def __init__(
        self,
        program: str = "ledger",
        mode: Any = "exactly_once",
        *,
        atomic: str = "batch",
        among: History | None = None,
        sets_aside: bool = False,
        **parameters: int,
    ) -> None:
        self.program = PROGRAMS[program]
        self.name = name = "other" if among else "app"
        topics = {
            role: f"{name}-{role}"
            for role in (*self.program.topics, *([DEAD_LETTERS] if sets_aside else []))
        }
        self.reads = topics[self.program.reads]
        self.writes = topics[self.program.writes]
        self.second = topics.get(self.program.beside, "")
        self.history = among or History([begun(atomic=atomic)])
        self._entries = 0
        self._next: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._tell(
            Application(
                name=name,
                application_id=name,
                program=program,
                mode=mode,
                topics=topics,
                parameters=self.program.parameters | parameters,
                transaction_timeout_ms=3000,
            )
        )

    def _happens(self, name: str, event: Any, **more: Any) -> None:
        self._tell(Instance(application=self.name, name=name, event=event, **{"at_ms": 0} | more))

    def _emit(self, entry: Record, output: dict[str, Any]) -> Record:
        if "offset" in output:
            self._next[self.writes, output["partition"]] = output["offset"]
        return self._append(entry._replace(**({"topic": self.writes, "visible": True} | output)))

    def _number(self) -> int:
        self._entries += 1
        return self._entries - 1

    def _row_of(self, topic: str, key: str, row: dict[str, Any], changes: dict[str, Any]) -> Record:
        record = Record(
            topic=topic,
            partition=0,
            offset=0,
            timestamp_ms=EPOCH_MS,
            key=key.encode(),
            value=json.dumps(row).encode(),
        )
        return self._append(record._replace(**changes))

    def _append(self, record: Record) -> Record:
        """Give the record the next offset of its partition."""
        offset = self._next[record.topic, record.partition]
        self._next[record.topic, record.partition] += 1
        record = record._replace(offset=offset)
        self._tell(record)
        return record

    def _tell(self, event: AnyEvent) -> None:
        self.history.add(event)


class _Inputs(_Log):
    """The records that an application is given."""

    def entry(
        self,
        *postings: tuple[str, int],
        via: Iterable[Position] = (),
        partition: int = 0,
        branch: str = "north",
        headers: Iterable[tuple[str, bytes | None]] = (),
        visible: bool = True,
        **amounts: int,
    ) -> Record:
        """Append an entry to the input.

        Postings are given as pairs or by account; `via` is the chain that the entry came by.
        """
        number = self._number()
        envelope = Envelope(
            id=f"e{number}",
            timestamp_ms=EPOCH_MS + number,
            chain=[_hop(*position) for position in via],
            postings=[Posting(account=a, amount_cents=c) for a, c in (*postings, *amounts.items())],
        )
        record = Record(
            topic=self.reads,
            partition=partition,
            offset=0,
            timestamp_ms=EPOCH_MS + number,
            key=branch.encode(),
            value=envelope.SerializeToString(),
            headers=tuple(headers),
            visible=visible,
        )
        return self._append(record)

    def aborted(self, *postings: tuple[str, int], **amounts: Any) -> Record:
        """Append an entry whose transaction was aborted upstream."""
        return self.entry(*postings, visible=False, **amounts)

    def spoiled(self, value: bytes | None = b"\xff", **changes: Any) -> Record:
        """Append a record in the input that is no entry."""
        record = Record(
            topic=self.reads,
            partition=0,
            offset=0,
            timestamp_ms=EPOCH_MS,
            key=b"north",
            value=value,
        )._replace(**changes)
        return self._append(record)

    def again(self, record: Record) -> Record:
        """Append the same envelope once more.

        A relay upstream that stepped back sends it so.
        """
        return self._append(record)

    def left(self, key: str, /, *cells: Any, partition: int = 0, **changes: Any) -> Record:
        """Append a row of a join's first table.

        Its cells are the ticker of a position, or the positions of a client.
        """
        number = self._number()
        if self.program.name == "clients":
            row: dict[str, Any] = {"client": key, "positions": list(cells)}
        else:
            row = {
                "positionId": key,
                "client": "c",
                "ticker": cells[0] if cells else None,
                "amount": number,
            }
        return self._row_of(self.reads, key, row, {"partition": partition} | changes)

    def right(self, key: str, /, *, partition: int = 0, **changes: Any) -> Record:
        """Append a row of a join's second table."""
        name = f"n{self._number()}"
        if self.program.name == "clients":
            row: dict[str, Any] = {"client": key, "name": name, "surname": "s", "email": "e"}
        else:
            row = {"ticker": key, "exchange": "LON", "name": name, "founded": 1900}
        return self._row_of(self.second, key, row, {"partition": partition} | changes)

    def gone(self, row: Record, *, visible: bool = True) -> Record:
        """Delete a row of either table."""
        return self._append(row._replace(value=None, visible=visible))

    def gap(self, offsets: int = 1, partition: int = 0) -> None:
        """Skip offsets of the input, which hold transaction markers."""
        self._next[self.reads, partition] += offsets


class _Outputs(_Inputs):
    """The records that an application writes, and their batches."""

    def row(self, account: str, cents: Any, postings: int, entry: Record, **changes: Any) -> Record:
        """Append a ledger's row: the balance after so many postings.

        The entry is the one applied last. `applied` among the changes is the position that the row
        says was applied last.
        """
        row = {"account": account, "balance_cents": cents, "postings": postings}
        return self._folded(account, row, entry, changes)

    def total(
        self, branch: str, cents: int, postings: int, entry: Record, **changes: Any
    ) -> Record:
        """Append the total of a branch after so many postings.

        The entry is the one applied last.
        """
        row = {"branch": branch, "balance_cents": cents, "postings": postings}
        return self._folded(branch, row, entry, changes)

    def _folded(
        self, key: str, row: dict[str, Any], entry: Record, changes: dict[str, Any]
    ) -> Record:
        envelope = Envelope.FromString(entry.value or b"")
        chain = [*envelope.chain, _hop(entry.topic, entry.partition, entry.offset)]
        applied = changes.pop("applied", (chain[0].topic, chain[0].partition, chain[0].offset))
        row["applied"] = dict(zip(("topic", "partition", "offset"), applied, strict=False))
        headers = (
            ("id", envelope.id.encode()),
            ("chain", Envelope(chain=chain).SerializeToString()),
        )
        output = {"key": key.encode(), "value": json.dumps(row).encode(), "headers": headers}
        return self._emit(entry, output | {"partition": 0} | changes)

    def copy(
        self, entry: Record, *, hop: Position | None = None, partition: int = 0, **changes: Any
    ) -> Record:
        """Append a relay's output: the entry with the position that it was read from."""
        envelope = Envelope.FromString(entry.value or b"")
        envelope.chain.append(_hop(*(hop or (entry.topic, entry.partition, entry.offset))))
        return self._emit(
            entry, {"value": envelope.SerializeToString(), "partition": partition} | changes
        )

    def letter(self, record: Record, *, reason: bytes = b"why", **changes: Any) -> Record:
        """Append a dead letter of this record."""
        added = (("reason", reason), *_where(record))
        return self._letter(record, (*record.headers, *added), changes)

    def letter_of_streams(
        self, record: Record, *, exception: bytes = b"java.lang.Exception", **changes: Any
    ) -> Record:
        """Append a dead letter of this record as Kafka Streams writes it (KIP-1034)."""
        why = (("exception", exception), ("message", None), ("stacktrace", b"\tat A.b"))
        added = [(f"__streams.errors.{name}", said) for name, said in (*why, *_where(record))]
        return self._letter(record, (*record.headers, *added), changes)

    def _letter(self, record: Record, headers: Headers, changes: dict[str, Any]) -> Record:
        letter = {"topic": f"{self.name}-{DEAD_LETTERS}", "visible": True, "headers": headers}
        return self._append(record._replace(**(letter | changes)))

    def visit(
        self,
        customer: str,
        visitor: str | None,
        *,
        seen_ms: int = 0,
        visible: bool = True,
        **changes: Any,
    ) -> Record:
        """Append an event of a customer; None is a null value."""
        value = {"customerId": customer, "visitorId": visitor, "action": "click"}
        record = Record(
            topic=self.reads,
            partition=0,
            offset=0,
            timestamp_ms=EPOCH_MS,
            key=customer.encode(),
            value=None if visitor is None else json.dumps(value).encode(),
            visible=visible,
            seen_ms=seen_ms,
        )
        return self._append(record._replace(**changes))

    def visits(self, customer: str, visitors: str, *, seen_ms: int = 0) -> None:
        """Append an event for each letter."""
        for visitor in visitors:
            self.visit(customer, visitor, seen_ms=seen_ms)

    def out(self, customer: str, visitors: str, at_ms: int = 0, **changes: Any) -> Record:
        """Append a batch with an event for each letter, appended and seen at this time."""
        events = [{"visitorId": visitor, "action": "click"} for visitor in visitors]
        value = json.dumps({"customerId": customer, "events": events}).encode()
        record = Record(
            topic=self.writes,
            partition=0,
            offset=0,
            timestamp_ms=EPOCH_MS + at_ms,
            key=customer.encode(),
            value=value,
            seen_ms=at_ms,
        )
        return self._append(record._replace(**changes))

    def joined(self, left: Record, right: Record | None = None, **changes: Any) -> Record:
        """Append a join's result of these two records."""
        sides = {"left": left, "right": right}
        value: dict[str, Any] = {
            side: record and json.loads(record.value or b"null") for side, record in sides.items()
        }
        value["from"] = {
            side: record and record.at.removeprefix(f"{self.name}-")
            for side, record in sides.items()
        }
        return self._emit(
            left, {"value": json.dumps(value).encode(), "partition": left.partition} | changes
        )

    def tombstone(self, left: Record, **changes: Any) -> Record:
        """Delete a join's result."""
        return self._emit(left, {"value": None, "partition": left.partition} | changes)

    def batch(self, first: int, last: int, producer: int, epoch: int = 0, **changes: Any) -> None:
        """Note the producer that wrote the outputs from one offset to another."""
        self._tell(
            Batch(
                topic=self.writes,
                partition=0,
                base_offset=first,
                last_offset=last,
                producer_id=producer,
                producer_epoch=epoch,
                transactional=True,
            ).model_copy(update=changes)
        )


class _Lives(_Outputs):
    """The lives of an application's instances, and what was looked at meanwhile."""

    def declare(self, **said: str) -> None:
        """Let the design's manifest say this, from the beginning on."""
        begun, *others = self.history.events
        assert isinstance(begun, Begun)
        self.history = History([begun.model_copy(update=said), *others])

    def start(
        self,
        name: str = "a",
        *,
        group: str | None = "app-group",
        internal_topics: tuple[str, ...] = (),
    ) -> None:
        """Start an instance, which is ready."""
        self._happens(name, "started", detail=f"{name}.stderr")
        self._happens(name, "ready", consumer_group=group, internal_topics=internal_topics)

    def kill(self, name: str = "a") -> None:
        """Kill an instance."""
        self._happens(name, "killed")

    def stands_by(self, name: str = "green") -> None:
        """Start a second cluster, which is warm."""
        self._happens(name, "started")
        self._happens(name, "standing-by")

    def stop(self, name: str = "a", *, at_ms: int = 0) -> None:
        """Close an instance."""
        self._happens(name, "stopped", at_ms=at_ms)

    def resume(self, name: str = "a") -> None:
        """Let a paused instance go on."""
        self._happens(name, "resumed")

    def settled(
        self,
        *below: int,
        second: Iterable[int] = (),
        stable_ms: int = 0,
        down: bool = True,
        group: bool = True,
    ) -> None:
        """Note that every transaction is decided.

        The input below these offsets (one a partition) is committed.
        """
        offsets = {f"{self.reads}-{partition}": offset for partition, offset in enumerate(below)}
        offsets |= {f"{self.second}-{partition}": offset for partition, offset in enumerate(second)}
        known = offsets if group else None
        self._tell(
            Committed(at_ms=0, application=self.name, offsets=known, stable_ms=stable_ms, down=down)
        )

    def stored(self, *written: tuple[int, str], at_ms: int = 0, **rows: Record) -> None:
        """Note the rows of the store, as these outputs say them, and each write's time."""
        kept = tuple((self.program.writes, a, (r.value or b"").decode()) for a, r in rows.items())
        writes = tuple((when_ms, self.program.writes, account) for when_ms, account in written)
        self._tell(Stored(at_ms=at_ms, application=self.name, rows=kept, writes=writes))

    def has_in_memory(self, mib: int) -> None:
        """Note the memory of the application's processes."""
        self._tell(Memory(at_ms=0, application=self.name, size_bytes=mib << 20))

    def recovers(self, after_ms: int) -> None:
        """Note that the first new output after a cold start is seen."""
        self._tell(Mark(at_ms=after_ms, fault="recovered", evidence={"after_ms": after_ms}))

    def shares(self) -> None:
        """Note that instances share the input."""
        shared = Happening.INPUT_SHARED
        self._tell(Mark(at_ms=0, happening=shared, fault=shared.text, evidence={}))

    def rests(
        self, looked_ms: int = 500, canary_ms: int = 10, others: float = 0.0, **longer: int
    ) -> None:
        """Pause the input, and look at the outputs."""
        self._tell(
            InputRested(
                application=self.name,
                since_ms=0,
                looked_ms=looked_ms,
                tolerance_ms=2100,
                canary_ms=canary_ms,
                others=others,
                **longer,
            )
        )

    def paused_with_a_transaction_open(self, *writers: tuple[int, int], stable: int) -> None:
        """Leave the mark of the fault.

        It says which producers were writing, and where the outputs were stable.
        """
        evidence = {
            "writers": [list(w) for w in writers],
            "last_stable": {f"{self.writes}-0": stable},
        }
        self._tell(Mark(at_ms=0, fault="with a transaction open", evidence=evidence))

    def ends(self, high_watermark: int, reason: str = "before the zombie resumes") -> None:
        """Note the ends of the outputs at a moment."""
        ends = {f"{self.writes}-0": high_watermark}
        self._tell(
            Ends(
                at_ms=0, application=self.name, reason=reason, last_stable=ends, high_watermark=ends
            )
        )

    def names(self, *topics: str, groups: tuple[str, ...] = (), ids: tuple[str, ...] = ()) -> None:
        """Note the names that exist on the broker."""
        self._tell(Names(at_ms=0, topics=topics, groups=groups, transactional_ids=ids))

    def failed(self, detail: str, name: str = "a") -> None:
        """Have the instance stop loudly, or refuse to start, and say why."""
        self._happens(name, "failed", detail=detail)


class _Tables(_Lives):
    """The signals of a pulse, the rows of its table, and answers from it."""

    def signal(
        self, robot: str, ts_ms: int, points: int, role: str = "motors", **changes: Any
    ) -> Record:
        """Append a signal in the input."""
        row = {"robot": robot, "ts_ms": ts_ms, "points": points}
        return self._row_of(f"{self.name}-{role}", robot, row, changes)

    def called(self, robot: str, name: str) -> Record:
        """Append a robot's name in the input."""
        return self._row_of(f"{self.name}-robots", robot, {"name": name}, {})

    def pulse(
        self, robot: str, *read: Record, value: dict[str, Any] | None = None, **changes: Any
    ) -> Record:
        """Append the row that these records give; `value` replaces fields of it."""
        said = [
            (record.topic.rsplit("-", 1)[1], json.loads(record.value or b""), record)
            for record in read
        ]
        signals = [value for role, value, _ in said if role != "robots"]
        first, last = (pick(each["ts_ms"] for each in signals) for pick in (min, max))
        points = sum(each["points"] for each in signals)
        first_points = sum(each["points"] for each in signals if each["ts_ms"] == first)
        row = {
            "robot": robot,
            "name": next(
                (value["name"] for role, value, _ in reversed(said) if role == "robots"), None
            ),
            "points": points,
            "first_points": first_points,
            "first_ts_ms": first,
            "last_ts_ms": last,
            "rate_mhz": (points - first_points) * 1_000_000 // (last - first)
            if last > first
            else 0,
            "applied": {
                role: {"partition": r.partition, "offset": r.offset} for role, _, r in said
            },
        }
        return self._row_of(self.writes, robot, row | (value or {}), changes)

    def answers(
        self,
        row: Record | None,
        *,
        key: str = "",
        name: str = "a",
        seen: bool = True,
        **changes: Any,
    ) -> None:
        """Have an instance answer with the value of a row, or with nothing.

        `seen` is whether readers saw that row by then.
        """
        stable = row.offset + seen if row else 0
        value = (row.value or b"").decode() if row else None
        key = (row.key or b"").decode() if row else key
        stables = {f"{self.writes}-0": stable}
        answer = Answer(
            at_ms=0,
            application=self.name,
            name=name,
            key=key.encode(),
            ready=True,
            value=value,
            stable=stables,
        )
        self._tell(answer.model_copy(update=changes))

    def keeps(
        self, topic: str, partitions: int = 1, repeated: int = 0, size_bytes: int = 0
    ) -> None:
        """Note a topic that the design keeps on the broker."""
        size = {"records": 1, "size_bytes": size_bytes}
        kept = Kept(
            at_ms=0,
            application=self.name,
            topic=topic,
            partitions=partitions,
            repeated=repeated,
            **size,
        )
        self._tell(kept)


class Story(_Tables):
    """The part of one application in a history.

    `beside` opens the part of another one in the same history.
    """

    def beside(self, mode: str) -> "Story":
        """Return the same program in another mode, in the same history."""
        return Story(self.program.name, mode, among=self.history)

    def on_a_shared_broker(self) -> "Story":
        """Return the same story on a broker that others use too."""
        begun, *events = self.history.events
        shared = begun.model_copy(update={"names_are_ours": False})
        self.history = History([shared, *events])
        return self

    def emitting_every_state(self) -> "Story":
        """Return the same story of a design that declares that it emits every state."""
        begun, *events = self.history.events
        declared = begun.model_copy(update={"emits": "every-state"})
        self.history = History([declared, *events])
        return self

    def edited(self, *changes: tuple[Record, list[Record]]) -> History:
        """Return the history with each of these outputs replaced by others.

        Every output is given the offset of its new place.
        """
        replaced = {id(record): others for record, others in changes}
        offsets = [0, 0]
        events: list[AnyEvent] = []
        for event in self.history.events:
            if isinstance(event, Record) and event.topic == self.writes:
                for record in replaced.get(id(event), [event]):
                    events.append(record._replace(offset=offsets[record.partition]))
                    offsets[record.partition] += 1
            else:
                events.append(event)
        return History(events)

    def judged(self, check: str, **arguments: Any) -> list[Anomaly]:
        """Return the anomalies that a check finds, as the history stands."""
        return CHECKS[check](self.history, self.name, **arguments)

    def found(self, check: str, **arguments: Any) -> list[Found]:
        """Return name, key and input position of each anomaly that a check finds."""
        return [(a.name, a.key, a.source) for a in self.judged(check, **arguments)]

    def claims(self, check: str, **arguments: Any) -> None:
        """Have a sentence of the feature ask for a check here."""
        self._tell(
            Claim(
                check=check,
                application=self.name,
                sentence=f"the {check} holds",
                arguments=arguments,
            )
        )

    def recorded(self, path: Path, verdict: str = "upheld", **ended: Any) -> Path:
        """Write the history to a file that ends in this verdict.

        Its scenario makes the claims that it holds.
        """
        begun, *others = self.history.events
        claims = tuple(claim.sentence for claim in self.history.of(Claim))
        first = begun.model_copy(update={"claims": claims})
        with History([first, *others, Ended(verdict=verdict, seconds=1.5, **ended)], path=path):
            return path


def resealed(path: Path, lines: Iterable[str]) -> Path:
    """Write these lines to a file, with a digest that fits them."""
    digest = RunningDigest()
    *before, last = (line.encode() for line in lines)
    written = [line + b"\n" for line in before]
    for line in written:
        digest.add(line)
    bare = re.sub(rb',"digest":.*', b"}", last)
    path.write_bytes(b"".join([*written, digest.closed(bare), b"\n"]))
    return path


def begun(**fields: Any) -> Begun:
    """Return the beginning of a hand-written history, with some other fields."""
    usual = {
        "scenario": "G1.story",
        "design": "hand-written",
        "design_version": "1",
        "atomic": "batch",
        "local_state": True,
        "broker": "none",
        "seed": 1,
        "attempt": 0,
        "application_id": "app",
        "names_are_ours": True,
    }
    return Begun.model_validate(usual | fields)


def _where(record: Record) -> Headers:
    """Return the position of a record, as the last headers of its dead letter."""
    where = (("topic", record.topic), ("partition", record.partition), ("offset", record.offset))
    return tuple((name, str(said).encode()) for name, said in where)


def _hop(topic: str, partition: int, offset: int, topic_id: bytes = b"") -> Hop:
    return Hop(topic=topic, partition=partition, offset=offset, topic_id=topic_id)
