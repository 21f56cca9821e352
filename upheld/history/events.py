"""The events of a history: one JSON line each, in the order they were seen.

A history holds everything that a verdict rests on: the inputs and outputs as read back from the
log, committed offsets, the writers of batches. It also holds marks of faults, and the claims that
were checked. So `upheld judge` reaches the same verdict with no broker. Times are milliseconds
since the scenario began, unless a name says otherwise.
"""

from base64 import b64decode
from binascii import b2a_base64
from collections.abc import Callable
from functools import lru_cache
from json.encoder import encode_basestring as _quoted
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function

from upheld.families import Family
from upheld.history.digest import Digest
from upheld.history.marks import Happening, Look, happening_of, look_of
from upheld.protocol.messages import ComparedWith, Mode, NoticeKind, OffsetsMean
from upheld.verdicts import Anomaly, Reason

BINARY = "base64:"
_CONTROLS = frozenset(bytes([code]) for code in range(32))
MOST_OFFSETS: Final = 1 << 20  # of a batch, which a broker limits by its bytes
# Of keys and of headers: an output has those of its input, and the rows of a run read the same.
_TEXTS_KEPT = 1 << 13


def _readable(data: bytes) -> str | None:
    """Return data as text if it reads well in a file, and is not taken for base64."""
    if data[:1] in _CONTROLS:  # as a protobuf message does, and no printable text
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() and not text.startswith(BINARY) else None


def _to_text(data: bytes) -> str:
    text = _readable(data)
    return _to_base64(data) if text is None else text


def _to_base64(data: bytes) -> str:
    return BINARY + b2a_base64(data, newline=False).decode("ascii")


def _to_bytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    return (
        b64decode(value[len(BINARY) :], validate=True)
        if value.startswith(BINARY)
        else value.encode()
    )


def _json(data: bytes | None) -> str:
    if data is None:
        return "null"
    text = _readable(data)
    if text is None:
        return f'"{_to_base64(data)}"'  # it holds nothing to escape
    return _quoted(text)


_key_json = lru_cache(_TEXTS_KEPT)(_json)


@lru_cache(_TEXTS_KEPT)
def _headers_json(headers: tuple[tuple[str, bytes | None], ...]) -> str:
    return ",".join([f"[{_quoted(name)},{_json(value)}]" for name, value in headers])


Data = Annotated[
    bytes,
    BeforeValidator(_to_bytes),
    PlainSerializer(_to_text, when_used="json"),
    WithJsonSchema({"type": "string", "description": f"text, or `{BINARY}` and bytes in base64"}),
]
Offsets = dict[str, int]  # "topic-partition" -> offset
# Fields that many events have.
AtMs = Annotated[int, Field(description="when, in milliseconds since the scenario began")]
ApplicationName = Annotated[str, Field(description="the application, by its name")]
InstanceName = Annotated[str, Field(description="the instance, by its name")]
TopicName = Annotated[str, Field(description="the topic, by its name on the broker")]
Partition = Annotated[int, Field(description="the number of the partition")]
LifeEvent = Literal[
    "started",
    "ready",
    "stopped",
    "killed",
    "paused",
    "resumed",
    "failed",
    "exited",
    "standing-by",
    "active",
    "inactive",
]


class Event(BaseModel):
    """One line of a history."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def line(self) -> str:
        """Write the event as JSON."""
        return self.model_dump_json()


class Begun(Event):
    """The start of an attempt: the design, the broker, the seed."""

    kind: Literal["begun"] = "begun"
    scenario: str = Field(description="the id of the row")
    design: str = Field(description="the design that is judged")
    design_version: str = Field(description="its version")
    follows: str = Field(
        default="", description="name and version of the release before it; empty without one"
    )
    atomic: Literal["batch", "shard"] = Field(description="as its design.toml says")
    local_state: bool = Field(description="as its design.toml says")
    progress: OffsetsMean = Field(default="group", description="as its design.toml says")
    bytes_beside_table: float = Field(default=1.0, description="as its design.toml says")
    cannot: tuple[str, ...] = Field(default=(), description="the limits that the design declares")
    emits: Literal["every-state"] | None = Field(
        default=None, description="None where outputs may skip states, if the program says so"
    )
    broker: str = Field(description="the broker that it ran on")
    seed: int = Field(description="the seed of the input")
    attempt: int = Field(description="the number of the attempt, from 0")
    application_id: str = Field(description="what is in each name of the attempt on the broker")
    names_are_ours: bool = Field(
        description="False on a broker that others use too: foreign topics are then ignored"
    )
    claims: tuple[str, ...] | None = Field(
        default=None, description="the sentences of the scenario that are to be judged, in order"
    )


class ModelFile(BaseModel):
    """The model that a user wrote for an application, and how it reads the input."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    place: str = Field(description="its file and name, such as orders.py:ORDERS")
    sha256: str = Field(description="the digest of the file")
    reads: str = Field(description="the format of the input that it is given: json or bytes")
    also_reads: dict[str, str] = Field(
        default={}, description="role of an input beside the first one -> its format"
    )


class FurtherOutput(BaseModel):
    """An output of an application beside its first one, and what of it counts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    writes: str = Field(description="the role of the topic")
    format: Literal["json", "bytes"] = Field(description="how an output is read")
    ignore: tuple[str, ...] = Field(default=(), description="paths that are not compared")
    identity: str | None = Field(
        default=None, description="the path of a field by which outputs are told apart"
    )
    increasing: str | None = Field(default=None, description="as of the first output")
    asked: dict[str, str] | None = Field(
        default=None, description="as of the first output, where the application is asked for keys"
    )


class Contract(BaseModel):
    """The contract of an application without a model, and what of an output counts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="the name of the application")
    reads: str = Field(description="the role of the topic that it reads")
    writes: str = Field(description="the role of the topic that it writes")
    format: Literal["json", "bytes", "envelope"] = Field(description="how an output is read")
    ignore: tuple[str, ...] = Field(default=(), description="paths that are not compared")
    shape: Literal["map", "fold"] | None = Field(
        default=None, description="what an output hangs on; None where a program says it"
    )
    model: ModelFile | None = Field(
        default=None, description="None if a run without a fault says what is right"
    )
    compared_with: ComparedWith = Field(
        default="itself", description="whose run that is: its own, or that of the release before it"
    )
    identity: str | None = Field(
        default=None,
        description="the path of a field by which outputs are told apart; their order is not "
        "compared then",
    )
    increasing: str | None = Field(
        default=None,
        description="the path of a field with a number that increases with each state of a key",
    )
    also_reads: tuple[str, ...] = Field(
        default=(), description="the roles of the topics that it reads beside the first one"
    )
    unique: dict[str, str] = Field(
        default={},
        description="role of an input -> the path of a field by which its records are told apart; "
        "only where an output has an identity",
    )
    asked: dict[str, str] | None = Field(
        default=None,
        description="place in an answer -> the place in the output that it has to be; none: the "
        "whole answer is the output; null where the application is not asked for keys of it",
    )
    further: tuple[FurtherOutput, ...] = Field(
        default=(), description="its outputs beside the first one, each of which is judged alike"
    )

    @property
    def outputs(self) -> "tuple[Contract, ...]":
        """The contracts of the outputs, each as if there were no other one."""
        own = [{"further": ()}, *({**vars(each), "further": ()} for each in self.further)]
        return tuple(self.model_copy(update=each) for each in own)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The roles of the topics that it reads, the first one first."""
        return (self.reads, *self.also_reads)

    @property
    def table(self) -> str:
        """The role of the output for whose keys it is asked; empty if for none."""
        return next((each.writes for each in self.outputs if each.asked is not None), "")

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the topics that it writes."""
        return (self.writes, *(each.writes for each in self.further))


class Application(Event):
    """One application of the scenario: program, mode, topics by role, parameters."""

    kind: Literal["application"] = "application"
    name: ApplicationName
    application_id: str = Field(description="what is in each of its names on the broker")
    program: str = Field(description="the program that it runs")
    mode: Mode = Field(description="the value of Kafka's processing.guarantee")
    topics: dict[str, str] = Field(description="role -> topic name")
    parameters: dict[str, int | str] = Field(description="the parameters of the program")
    transaction_timeout_ms: int = Field(description="Kafka's transaction.timeout.ms")
    contract: Contract | None = Field(
        default=None, description="in place of the program's; None where a program is judged"
    )


class Record(NamedTuple):
    """One record as it lies in the log.

    ``visible`` says whether a read_committed reader is given it. It is a tuple because a row reads
    thousands of them.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    visible: bool = True
    incarnation: int = 0
    seen_ms: int = 0

    @property
    def at(self) -> str:
        """The record's address, as topic-partition@offset."""
        return f"{self.topic}-{self.partition}@{self.offset}"

    def line(self) -> str:
        """Write the record as JSON.

        It is the same text as that of `RecordLine`, in half of the time.
        """
        topic, partition, offset, timestamp_ms, key, value, headers, visible, number, seen_ms = self
        return (
            f'{{"kind":"record","topic":{_quoted(topic)},"partition":{partition},'
            f'"offset":{offset},"timestamp_ms":{timestamp_ms},"key":{_key_json(key)},'
            f'"value":{_json(value)},"headers":[{_headers_json(headers)}],'
            f'"visible":{"true" if visible else "false"},"incarnation":{number},'
            f'"seen_ms":{seen_ms}}}'
        )

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return a schema that reads a record from its line."""
        return no_info_after_validator_function(RecordLine.record, handler(RecordLine))


class RecordLine(Event):
    """The line of a record."""

    kind: Literal["record"] = "record"
    topic: TopicName
    partition: Partition
    offset: int = Field(description="the offset of the record")
    timestamp_ms: int = Field(description="the timestamp of the record, since 1970")
    key: Data | None = Field(description="the key; null if there is none")
    value: Data | None = Field(description="the value; null for a tombstone")
    headers: tuple[tuple[str, Data | None], ...] = Field(
        default=(), description="name and value of each header, in order"
    )
    visible: bool = Field(default=True, description="whether a read_committed reader is given it")
    incarnation: int = Field(
        default=0, description="how often its topic had been deleted and made anew before"
    )
    seen_ms: int = Field(
        default=0,
        description=(
            "since when the harness knows that it is there, in milliseconds since the scenario "
            "began"
        ),
    )

    def record(self) -> Record:
        """Return the record that the line is of."""
        fields = self.__dict__.copy()
        del fields["kind"]
        return Record(**fields)


class Batch(Event):
    """The header of one record batch, by raw Fetch.

    It says which producer wrote the batch, and whether inside a transaction.
    """

    kind: Literal["batch"] = "batch"
    topic: TopicName
    partition: Partition
    base_offset: int = Field(description="the first offset of the batch")
    last_offset: int = Field(description="the last offset of the batch")
    producer_id: int = Field(description="the producer that wrote it; -1 if it has no id")
    producer_epoch: int = Field(description="the epoch of that producer")
    transactional: bool = Field(description="whether it is part of a transaction")
    control: Literal["commit", "abort"] | None = Field(
        default=None, description="of a marker: how the transaction ended"
    )

    @model_validator(mode="after")
    def _is_a_batch(self) -> Self:
        if not 0 <= self.last_offset - self.base_offset < MOST_OFFSETS:
            raise ValueError(f"a batch has no {self.last_offset - self.base_offset + 1} offsets")
        return self


class Failure(BaseModel):
    """The fields of a loud stop: its kind, and the place that it concerns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str = Field(description="the kind of the protocol, such as fenced")
    topic: str | None = Field(default=None, description="the topic that it concerns")
    partition: int | None = Field(default=None, description="the partition of that topic")
    offset: int | None = Field(default=None, description="the offset in that partition")
    file: str | None = Field(default=None, description="the file that it concerns")
    right: str | None = Field(default=None, description="the right that is missing")
    output: str | None = Field(default=None, description="the topic that takes no output")


Release = Literal["earlier", "later"]


class Instance(Event):
    """An event in the life of an instance of the design."""

    kind: Literal["instance"] = "instance"
    at_ms: AtMs
    application: ApplicationName
    name: InstanceName
    event: LifeEvent = Field(description="what happened to it")
    detail: str = Field(default="", description="more about it, for people")
    consumer_group: str | None = Field(default=None, description="as its `ready` says")
    internal_topics: tuple[str, ...] = Field(default=(), description="as its `ready` says")
    table: str | None = Field(default=None, description="as its `ready` says")
    failure: Failure | None = Field(
        default=None, description="of a loud stop: what it said in fields; `detail` is its text"
    )
    release: Release | None = Field(
        default=None, description="which of two releases it runs; null if there is one alone"
    )


class Notice(Event):
    """A notice that an instance did something by itself, and went on."""

    kind: Literal["notice"] = "notice"
    at_ms: AtMs
    application: ApplicationName
    name: InstanceName
    code: NoticeKind = Field(description="the kind of the protocol")
    topic: str | None = Field(default=None, description="the topic that it concerns")
    partition: int | None = Field(default=None, description="the partition of that topic")
    begin: int | None = Field(default=None, description="the position before")
    end: int | None = Field(default=None, description="the position after")
    message: str = Field(default="", description="what it said, for people")


def _with_code(
    fields: object, code: str, text: str, code_of: Callable[[str], str | None]
) -> object:
    """Give the fields of an event without a code the code of its text."""
    if not isinstance(fields, dict) or code in fields or not isinstance(fields.get(text), str):
        return fields
    return {**fields, code: code_of(fields[text])}


class Mark(Event):
    """Evidence that a fault happened at its moment."""

    kind: Literal["mark"] = "mark"
    at_ms: AtMs
    code: Family | None = Field(
        default=None, description="the family of the fault; none where it was no fault"
    )
    happening: Happening | None = Field(
        default=None, description="the stable code of what happened; `fault` is its text"
    )
    fault: str = Field(description="what happened, in words")
    evidence: dict[str, object] = Field(description="what was seen of it")
    logs: dict[str, int] = Field(
        default={}, description="the logs of the attempt's instances, with their bytes so far"
    )

    @model_validator(mode="before")
    @classmethod
    def _read_by_text(cls, fields: object) -> object:
        return _with_code(fields, "happening", "fault", happening_of)


class InputRested(Event):
    """A look at the outputs while the input rests."""

    kind: Literal["paused"] = "paused"
    application: ApplicationName
    since_ms: int = Field(description="the later of the last append and `ready`")
    looked_ms: int = Field(description="when it was looked")
    tolerance_ms: int = Field(description="by how much an output may be late")
    canary_ms: int = Field(description="produce to read_committed, measured in the same second")
    others: float = Field(
        default=0.0,
        description="the share of the cores, 0 to 1, that others took since the pause before",
    )
    harness: float = Field(
        default=0.0, description="the cores that the harness itself took since the pause before"
    )
    looked_on_ms: int = Field(
        default=0,
        description="how long it was looked on after the promised time, if others took the cores",
    )
    still_ms: int = Field(
        default=0, description="how long nothing had moved then; 0 if the outcome came"
    )


class Committed(Event):
    """The committed input offsets, beside the outputs that are visible then.

    The outputs are those before it in the history. Every transaction was decided by then, except
    one that a dead writer left open: then a reader has only what lies before it. ``down`` says that
    no instance was running, so that input and output are one consistent cut.
    """

    kind: Literal["committed"] = "committed"
    at_ms: AtMs
    application: ApplicationName
    offsets: Offsets | None = Field(description="None where the design names no consumer group")
    stable_ms: int = Field(
        description="how long a reader waited for the last stable offset to reach the end"
    )
    down: bool = Field(description="whether no instance was running")
    high_watermark: Offsets | None = Field(
        default=None, description="of the inputs, where it was looked for"
    )


class Fed(Event):
    """The records of an input that stand in the history by now.

    Each one counts, aborted ones too.
    """

    kind: Literal["fed"] = "fed"
    at_ms: AtMs
    application: ApplicationName
    records: dict[str, int] = Field(description="topic-partition -> how many")


class Measured(Event):
    """The size of the design's state, by its own count and in its own unit."""

    kind: Literal["measured"] = "measured"
    at_ms: AtMs
    application: ApplicationName
    size: int = Field(description="the size, in its unit")
    unit: Literal["rows", "bytes"] = Field(description="what is counted")


class Memory(Event):
    """The memory of an instance's processes, and of no other process."""

    kind: Literal["memory"] = "memory"
    at_ms: AtMs
    application: ApplicationName
    size_bytes: int = Field(description="the bytes that its processes hold together")


class Lag(Event):
    """The lag that an instance says it has, and the offsets in Kafka just after it."""

    kind: Literal["lag"] = "lag"
    at_ms: int = Field(description="when it was asked")
    application: ApplicationName
    name: InstanceName
    offsets: int = Field(description="of all partitions of the input together")
    committed: Offsets = Field(description="topic-partition -> committed offset")
    high_watermark: Offsets = Field(description="topic-partition -> end")


class Stored(Event):
    """The content of an application's store, and the writes since the last such event.

    The store itself says what was written.
    """

    kind: Literal["stored"] = "stored"
    at_ms: AtMs
    application: ApplicationName
    rows: tuple[tuple[str, str, str], ...] = Field(description="stage, key, value")
    writes: tuple[tuple[int, str, str], ...] = Field(description="at_ms, stage, key")


class Told(Event):
    """The effects of an application outside of Kafka.

    There is a line for each of them: key and value of an output.
    """

    kind: Literal["told"] = "told"
    at_ms: AtMs
    application: ApplicationName
    lines: tuple[tuple[str | None, str | None], ...] = Field(description="key and value of each")


class Connection(Event):
    """A connection of an instance to the broker, seen by the proxy.

    It says which client it was, and which requests came in which version.
    """

    kind: Literal["connection"] = "connection"
    at_ms: AtMs
    application: ApplicationName
    name: InstanceName
    client: str = Field(description="the id of the client")
    asked: dict[str, int] = Field(description="API and version, such as `end_txn v4` -> how many")
    changed: list[tuple[int, str, str]] = Field(
        default=[], description="each change: when, by which API, and what befell it"
    )


class Negotiated(Event):
    """The versions of Kafka's APIs that an instance used through the proxy.

    The proxy offers no version that it cannot read, so they may be older than those that the same
    clients would use without it.
    """

    kind: Literal["negotiated"] = "negotiated"
    at_ms: AtMs
    application: ApplicationName
    name: InstanceName
    through: dict[str, int] = Field(description="API -> the highest version that was used")
    without: dict[str, int] = Field(
        description="the same; the broker's highest where the proxy offered no newer one"
    )
    hidden: dict[str, int] = Field(
        default={}, description="the broker's APIs that the proxy does not offer at all"
    )


class Answer(Event):
    """The answer of an instance for a key of its table."""

    kind: Literal["answer"] = "answer"
    at_ms: AtMs
    application: ApplicationName
    name: InstanceName
    key: Data = Field(description="the key that it was asked for")
    ready: bool = Field(description="False where the table could not be read yet")
    value: str | None = Field(default=None, description="the row; null if there is none")
    stable: Offsets = Field(
        description="last stable offset of each partition of the table, listed after the answer"
    )


class Kept(Event):
    """A topic that the design has made, and how much of it stands in the table too."""

    kind: Literal["kept"] = "kept"
    at_ms: AtMs
    application: ApplicationName
    topic: TopicName
    partitions: int = Field(description="the number of its partitions")
    records: int = Field(description="the number of its records")
    size_bytes: int = Field(description="the bytes of their keys and values")
    repeated: int = Field(description="records whose key and value a row of the table has as well")


class Ends(Event):
    """The end of every output partition, under both isolation levels."""

    kind: Literal["ends"] = "ends"
    at_ms: AtMs
    application: ApplicationName
    look: Look | None = Field(
        default=None, description="the stable code of the moment; `reason` is its text"
    )
    reason: str = Field(description="the moment, in words")
    last_stable: Offsets = Field(description="topic-partition -> end for read_committed")
    high_watermark: Offsets = Field(description="topic-partition -> end")

    @model_validator(mode="before")
    @classmethod
    def _read_by_text(cls, fields: object) -> object:
        return _with_code(fields, "look", "reason", look_of)


class Names(Event):
    """The names that exist on the broker at one moment."""

    kind: Literal["names"] = "names"
    at_ms: AtMs
    topics: tuple[str, ...] = Field(description="the topics")
    groups: tuple[str, ...] = Field(description="the consumer groups")
    transactional_ids: tuple[str, ...] = Field(default=(), description="the transactional ids")


class Claim(Event):
    """A check that a sentence of the feature asked for, with its arguments."""

    kind: Literal["claim"] = "claim"
    check: str = Field(description="the name of the check")
    application: ApplicationName
    sentence: str = Field(description="the sentence of the feature")
    arguments: dict[str, object] = Field(default={}, description="the arguments of the check")


class Ended(Event):
    """The verdict that the run gave, and the reason.

    The digest is that of the file that it was read from. A file gets one as it is written.
    """

    kind: Literal["ended"] = "ended"
    verdict: str = Field(description="the verdict")
    code: Reason | None = Field(
        default=None, description="the kind of the reason; `reason` is its text"
    )
    reason: str = Field(default="", description="the reason, in words")
    anomalies: tuple[Anomaly, ...] = Field(default=(), description="the worst ones, worst first")
    seconds: float = Field(description="the time that the attempt took")
    digest: Digest | None = Field(
        default=None, description="of all lines, which says whether the file was altered"
    )

    def line(self) -> str:
        """Write the event as JSON, without its digest."""
        return self.model_dump_json(exclude={"digest"})


class Answered(Event):
    """The answer of an application without a model, from a run without a fault.

    The outputs are the records of the topic that stand before it in the history. A run of an
    application with several outputs has an answer of each.
    """

    kind: Literal["answered"] = "answered"
    at_ms: AtMs
    application: ApplicationName
    inputs: str = Field(description="the digest of the visible input records")
    outputs: str = Field(description="the topic of the outputs; a run has a topic of its own")
    output: str = Field(
        default="", description="the role of that topic; empty if the application has one output"
    )
    topics: tuple[str, ...] = Field(description="that were made for the run")
    unstable: tuple[str, ...] = Field(
        default=(), description="fields that differ between two runs on one input"
    )
    types: tuple[tuple[str, ...], ...] = Field(
        default=(), description="the JSON types of each of these fields in both runs"
    )
    is_ordered: bool = Field(
        default=True, description="whether two runs give as many outputs of each key"
    )
    is_by_last_value: bool = Field(
        default=False, description="whether only the last value of each key is compared"
    )


AnyEvent = Annotated[
    Begun
    | Application
    | Record
    | Batch
    | Instance
    | Notice
    | Mark
    | InputRested
    | Committed
    | Fed
    | Measured
    | Memory
    | Lag
    | Told
    | Connection
    | Negotiated
    | Stored
    | Answer
    | Kept
    | Ends
    | Names
    | Answered
    | Claim
    | Ended,
    Field(discriminator="kind"),
]
EVENT: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)
