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
    model_validator,
)
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function

from upheld.families import Family
from upheld.history.digest import Digest
from upheld.history.marks import Happening, Look, happening_of, look_of
from upheld.protocol.messages import OffsetsMean
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


Data = Annotated[bytes, BeforeValidator(_to_bytes), PlainSerializer(_to_text, when_used="json")]
Offsets = dict[str, int]  # "topic-partition" -> offset
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
    scenario: str
    design: str
    design_version: str
    atomic: Literal["batch", "shard"]
    local_state: bool
    progress: OffsetsMean = "group"
    bytes_beside_table: float = 1.0
    cannot: tuple[str, ...] = ()  # the limits that the design declares
    emits: Literal["every-state"] | None = Field(
        default=None, description="None where outputs may skip states, if the program says so"
    )
    broker: str
    seed: int
    attempt: int
    application_id: str
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


class Contract(BaseModel):
    """The contract of an application without a model, and what of an output counts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    reads: str
    writes: str
    format: Literal["json", "bytes", "envelope"]
    ignore: tuple[str, ...] = ()
    model: ModelFile | None = Field(
        default=None, description="None if the application is its own oracle"
    )


class Application(Event):
    """One application of the scenario: program, mode, topics by role, parameters."""

    kind: Literal["application"] = "application"
    name: str
    application_id: str
    program: str
    mode: Literal["at_least_once", "exactly_once"]
    topics: dict[str, str]
    parameters: dict[str, int | str]
    transaction_timeout_ms: int
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
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Data | None
    value: Data | None
    headers: tuple[tuple[str, Data | None], ...] = ()
    visible: bool = True
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
    topic: str
    partition: int
    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    transactional: bool
    control: Literal["commit", "abort"] | None = None

    @model_validator(mode="after")
    def _is_a_batch(self) -> Self:
        if not 0 <= self.last_offset - self.base_offset < MOST_OFFSETS:
            raise ValueError(f"a batch has no {self.last_offset - self.base_offset + 1} offsets")
        return self


class Failure(BaseModel):
    """The fields of a loud stop: its kind, and the place that it concerns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    file: str | None = None
    right: str | None = None
    output: str | None = None


class Instance(Event):
    """An event in the life of an instance of the design."""

    kind: Literal["instance"] = "instance"
    at_ms: int
    application: str
    name: str
    event: LifeEvent
    detail: str = ""
    consumer_group: str | None = None
    internal_topics: tuple[str, ...] = ()
    table: str | None = None
    failure: Failure | None = Field(
        default=None, description="of a loud stop: what it said in fields; `detail` is its text"
    )


class Notice(Event):
    """A notice that an instance did something by itself, and went on.

    ``begin`` and ``end`` are the position before and after, of a partition of its input.
    """

    kind: Literal["notice"] = "notice"
    at_ms: int
    application: str
    name: str
    code: Literal["offset-reset", "recovered"]
    topic: str | None = None
    partition: int | None = None
    begin: int | None = None
    end: int | None = None
    message: str = ""


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
    at_ms: int
    code: Family | None = Field(
        default=None, description="the family of the fault; none where it was no fault"
    )
    happening: Happening | None = Field(
        default=None, description="the stable code of what happened; `fault` is its text"
    )
    fault: str
    evidence: dict[str, object]
    logs: dict[str, int] = Field(
        default={}, description="the logs of the attempt's instances, with their bytes so far"
    )

    @model_validator(mode="before")
    @classmethod
    def _read_by_text(cls, fields: object) -> object:
        return _with_code(fields, "happening", "fault", happening_of)


class InputRested(Event):
    """A look at the outputs while the input rests.

    ``since_ms`` is the later of the last append and `ready`.
    """

    kind: Literal["paused"] = "paused"
    application: str
    since_ms: int
    looked_ms: int
    tolerance_ms: int
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
    at_ms: int
    application: str
    offsets: Offsets | None = Field(description="None where the design names no consumer group")
    stable_ms: int = Field(
        description="how long a reader waited for the last stable offset to reach the end"
    )
    down: bool
    high_watermark: Offsets | None = Field(
        default=None, description="of the inputs, where it was looked for"
    )


class Fed(Event):
    """The records of an input that stand in the history by now.

    Each one counts, aborted ones too.
    """

    kind: Literal["fed"] = "fed"
    at_ms: int
    application: str
    records: dict[str, int] = Field(description="topic-partition -> how many")


class Measured(Event):
    """The size of the design's state, by its own count and in its own unit."""

    kind: Literal["measured"] = "measured"
    at_ms: int
    application: str
    size: int
    unit: Literal["rows", "bytes"]


class Memory(Event):
    """The memory of an instance's processes, and of no other process."""

    kind: Literal["memory"] = "memory"
    at_ms: int
    application: str
    size_bytes: int


class Lag(Event):
    """The lag that an instance says it has, and the offsets in Kafka just after it."""

    kind: Literal["lag"] = "lag"
    at_ms: int = Field(description="when it was asked")
    application: str
    name: str
    offsets: int = Field(description="of all partitions of the input together")
    committed: Offsets
    high_watermark: Offsets


class Stored(Event):
    """The content of an application's store, and the writes since the last such event.

    The store itself says what was written.
    """

    kind: Literal["stored"] = "stored"
    at_ms: int
    application: str
    rows: tuple[tuple[str, str, str], ...] = Field(description="stage, key, value")
    writes: tuple[tuple[int, str, str], ...] = Field(description="at_ms, stage, key")


class Told(Event):
    """The effects of an application outside of Kafka.

    There is a line for each of them: key and value of an output.
    """

    kind: Literal["told"] = "told"
    at_ms: int
    application: str
    lines: tuple[tuple[str | None, str | None], ...]


class Connection(Event):
    """A connection of an instance to the broker, seen by the proxy.

    It says which client it was, and which requests came in which version.
    """

    kind: Literal["connection"] = "connection"
    at_ms: int
    application: str
    name: str
    client: str
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
    at_ms: int
    application: str
    name: str
    through: dict[str, int] = Field(description="API -> the highest version that was used")
    without: dict[str, int] = Field(
        description="the same; the broker's highest where the proxy offered no newer one"
    )
    hidden: dict[str, int] = Field(
        default={}, description="the broker's APIs that the proxy does not offer at all"
    )


class Answer(Event):
    """The answer of an instance for a key of its table.

    ``stable`` is how far readers of committed data saw then.
    """

    kind: Literal["answer"] = "answer"
    at_ms: int
    application: str
    name: str
    key: Data
    ready: bool = Field(description="False where the table could not be read yet")
    value: str | None = None
    stable: Offsets = Field(
        description="last stable offset of each partition of the table, listed after the answer"
    )


class Kept(Event):
    """A topic that the design has made, and how much of it stands in the table too."""

    kind: Literal["kept"] = "kept"
    at_ms: int
    application: str
    topic: str
    partitions: int
    records: int
    size_bytes: int
    repeated: int = Field(description="records whose key and value a row of the table has as well")


class Ends(Event):
    """The end of every output partition, under both isolation levels."""

    kind: Literal["ends"] = "ends"
    at_ms: int
    application: str
    look: Look | None = Field(
        default=None, description="the stable code of the moment; `reason` is its text"
    )
    reason: str
    last_stable: Offsets
    high_watermark: Offsets

    @model_validator(mode="before")
    @classmethod
    def _read_by_text(cls, fields: object) -> object:
        return _with_code(fields, "look", "reason", look_of)


class Names(Event):
    """The names that exist on the broker at one moment."""

    kind: Literal["names"] = "names"
    at_ms: int
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...] = ()


class Claim(Event):
    """A check that a sentence of the feature asked for, with its arguments."""

    kind: Literal["claim"] = "claim"
    check: str
    application: str
    sentence: str
    arguments: dict[str, object] = {}


class Ended(Event):
    """The verdict that the run gave, and the reason.

    The digest is that of the file that it was read from. A file gets one as it is written.
    """

    kind: Literal["ended"] = "ended"
    verdict: str
    code: Reason | None = None
    reason: str = ""
    anomalies: tuple[Anomaly, ...] = ()
    seconds: float
    digest: Digest | None = None

    def line(self) -> str:
        """Write the event as JSON, without its digest."""
        return self.model_dump_json(exclude={"digest"})


class Answered(Event):
    """The answer of an application without a model, from a run without a fault.

    The outputs are the records of the topic that stand before it in the history.
    """

    kind: Literal["answered"] = "answered"
    at_ms: int
    application: str
    inputs: str = Field(description="the digest of the visible input records")
    outputs: str = Field(description="the topic of the outputs; a run has a topic of its own")
    topics: tuple[str, ...] = Field(description="that were made for the run")
    unstable: tuple[str, ...] = Field(
        default=(), description="fields that differ between two runs on one input"
    )
    is_ordered: bool = Field(
        default=True, description="whether two runs give as many outputs of each key"
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
