"""The adapter protocol, version 2, between the harness and a design's instance.

The messages are JSON lines. The harness writes one request a line to the instance's standard input.
The instance answers with one line on its standard output, before the next request comes. ``failed``
and ``notice`` alone may come unasked. Standard error is the design's log. A design may speak
version 1, which has no ``notice`` and fewer kinds of ``failed``.

The JSON Schema of these models (``upheld schema``) is the documentation of the wire format. Times
are in milliseconds, and a design never sees an expected answer.
"""

from typing import Annotated, Final, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator
from pydantic.config import JsonDict

PROTOCOL_VERSION: Final = 2
SPOKEN: Final = (1, 2)  # the versions that a design may speak

Mode = Literal["at_least_once", "exactly_once"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
# What the committed offsets of a design's consumer group say, by its design.toml.
OffsetsMean = Literal["group", "group-leads", "none"]
ComparedWith = Literal["itself", "previous"]  # whose run without a fault says what is right
Parameter = int | str
FailureKind = Literal[
    "fenced", "poison", "offset-lost", "conflict", "storage", "denied", "refused", "ended"
]
LATER_KINDS: Final = frozenset[FailureKind]({"denied", "refused", "ended"})  # since version 2
NoticeKind = Literal["offset-reset", "recovered"]
GroupProtocol = Literal["classic", "consumer", "streams"]
_TEXT: Final[JsonDict] = {"type": "string", "minLength": 1}
_NUMBER: Final[JsonDict] = {"type": "integer"}


def _needs(kind: str, **fields: JsonDict) -> JsonDict:
    """Return a rule of JSON Schema: a message of this kind has these fields, and not as null."""
    return {
        "if": {"properties": {"kind": {"const": kind}}},
        "then": {"properties": {**fields}, "required": [*fields]},
    }


class Message(BaseModel):
    """One line of the protocol.

    An unknown field is refused, so that a misspelt one is seen at once.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


class Hello(Message):
    """First request: boot the runtime and introduce yourself. Deadline 60 s."""

    type: Literal["hello"] = "hello"
    protocol: int = Field(
        default=PROTOCOL_VERSION, description="the latest that the harness speaks"
    )


class HelloReply(Message):
    """The design introduces itself; its fields must agree with the manifest."""

    type: Literal["hello"] = "hello"
    protocol: int = Field(description="the version that the design speaks: 1 or 2")
    name: str = Field(description="as design.toml says")
    version: str = Field(description="as design.toml says")
    language: str = Field(description="for people, such as go or java")
    programs: tuple[str, ...] = Field(description="those of design.toml")
    modes: tuple[Mode, ...] = Field(description="those of design.toml")
    capabilities: tuple[str, ...] = Field(default=(), description="those of design.toml")


class Start(Message):
    """Run one program. Deadline 60 s.

    Answer ``ready`` once the instance holds its input and has run all that must warm up.
    """

    type: Literal["start"] = "start"
    program: str = Field(description="the program to run, such as relay")
    application_id: str = Field(
        description="part of every name the design creates on the broker, wherever it stands there"
    )
    instance: str = Field(
        description=(
            "name of this instance, unique within the application; who replaces one that is taken "
            "for dead has its name"
        )
    )
    mode: Mode | None = Field(
        default=None,
        description="Kafka's processing.guarantee; absent means at_least_once, as in Kafka",
    )
    bootstrap: str = Field(description="Kafka's bootstrap.servers")
    client: dict[str, str] = Field(
        default={}, description="security properties by their librdkafka names"
    )
    topics: dict[str, str] = Field(description="role in the program's contract -> topic name")
    parameters: dict[str, Parameter] = Field(
        default={}, description="the program's parameters, such as commit_interval_ms"
    )
    group_protocol: GroupProtocol | None = Field(
        default=None,
        description="Kafka's group.protocol; absent means as usual. With `consumer` the session is "
        "the group's own, and the harness sets it",
    )
    session_timeout_ms: int = Field(description="Kafka's session.timeout.ms of the group")
    transaction_timeout_ms: int = Field(
        description="Kafka's transaction.timeout.ms; above the commit interval"
    )
    offset_reset: Literal["earliest"] = Field(
        default="earliest", description="where to read from if the group has no offset"
    )
    standing_by: bool = Field(
        default=False,
        description="get warm beside a cluster that is active, and emit nothing before "
        "``activate``",
    )
    workers: int = Field(
        default=0,
        description="so many processes share the work within the instance; 0: as it likes",
    )
    several: bool = Field(
        default=False, description="others may run beside it, to share the input or to take over"
    )
    state_dir: str = Field(description="this instance's own disk; may be wiped between starts")
    durable_dir: str = Field(description="shared storage of the application; kept by every crash")
    stores: dict[str, str] = Field(default={}, description="kind of state store -> address")


class Ready(Message):
    """The instance holds its input and works."""

    type: Literal["ready"] = "ready"
    consumer_group: str | None = Field(
        default=None,
        description="the group that holds its offsets; design.toml says what they mean (progress)",
    )
    transactional_id_prefix: str | None = Field(
        default=None, description="how each of its transactional ids begins"
    )
    internal_topics: tuple[str, ...] = Field(
        default=(), description="topics the design creates; each has application_id in its name"
    )
    table: str | None = Field(default=None, description="the topic that is the queryable table")


class StandingBy(Message):
    """The instance is warm and waits for ``activate``."""

    type: Literal["standing_by"] = "standing_by"


class Unsupported(Message):
    """The design does not offer the program as the request asks for it."""

    type: Literal["unsupported"] = "unsupported"
    reason: str = Field(description="why, in a sentence for people")
    link: str | None = Field(default=None, description="where it is documented")


class Error(Message):
    """The request failed; ``definite`` says that it certainly had no effect."""

    type: Literal["error"] = "error"
    definite: bool = Field(description="whether the request certainly had no effect")
    message: str = Field(description="what went wrong, for people")


class Query(Message):
    """Read one key of a table. Deadline 5 s."""

    type: Literal["query"] = "query"
    table: str = Field(description="the role of the output topic that is the table")
    key: str = Field(description="the key of a row, as text")


class Value(Message):
    """The committed value of the key; null if there is none."""

    type: Literal["value"] = "value"
    value: str | None = Field(description="the row as it stands in the topic, as text")


class NotReady(Message):
    """The table cannot be read yet."""

    type: Literal["not_ready"] = "not_ready"


class Measure(Message):
    """Say how much state the program holds. Deadline 30 s.

    That is all of its state: rows, subscriptions, and what it remembers of deletions. Only designs
    with the capability ``measure`` are asked.
    """

    type: Literal["measure"] = "measure"


class Measured(Message):
    """The size of the state, always in the same unit."""

    type: Literal["measured"] = "measured"
    size: int = Field(ge=0, description="of all state that the instance holds")
    unit: Literal["rows", "bytes"] = Field(description="what is counted")


class Lag(Message):
    """Say how far the design is behind. Deadline 5 s.

    Only designs with the capability ``lag`` are asked.
    """

    type: Literal["lag"] = "lag"


class Lagging(Message):
    """The number of offsets that are not committed, of all partitions together.

    They are the offsets of the design's input at or above those that its group has committed.
    """

    type: Literal["lagging"] = "lagging"
    offsets: int = Field(ge=0, description="of all partitions of the input together")


class Workers(Message):
    """Say which processes share the work just now. Deadline 5 s.

    Only designs with the capability ``workers`` are asked.
    """

    type: Literal["workers"] = "workers"


class WorkersReply(Message):
    """Process ids on this machine; each process may be killed, and the design goes on."""

    type: Literal["workers"] = "workers"
    pids: tuple[int, ...] = Field(description="the processes that run just now")


class Activate(Message):
    """Begin to emit every key that the input at or above these positions touches."""

    type: Literal["activate"] = "activate"
    after: dict[str, int] = Field(description="topic-partition -> offset")


class Deactivate(Message):
    """Finish, commit, stop emitting, and say how far it went."""

    type: Literal["deactivate"] = "deactivate"


class Deactivated(Message):
    """The positions up to which the design has emitted.

    The outputs of all input below them are visible, and of no input at or above them.
    """

    type: Literal["deactivated"] = "deactivated"
    emitted_through: dict[str, int] = Field(description="topic-partition -> next offset")


class Stop(Message):
    """Close gracefully: finish, commit, release. Deadline: ``deadline_ms`` plus 5 s."""

    type: Literal["stop"] = "stop"
    deadline_ms: int = Field(description="the time that the design has to close")


class Stopped(Message):
    """The program is closed.

    A ``reusable`` design may be started again, any other design exits.
    """

    type: Literal["stopped"] = "stopped"


class Failed(Message):
    """A loud stop, unasked: the instance gives up, and exits after this line.

    It leaves no open transaction. ``again``: a reusable design stays instead, has let go of
    everything, and takes another start. Where the failure concerns a place, the fields name it;
    without them the message has to.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [_needs("denied", right=_TEXT), _needs("refused", output=_TEXT)]
        }
    )

    type: Literal["failed"] = "failed"
    kind: FailureKind = Field(description="why the instance gives up")
    message: str = Field(description="what happened, for people")
    again: bool = Field(
        default=False, description="whether it stays, and takes another start; if it is reusable"
    )
    topic: str | None = Field(default=None, description="the topic that it concerns")
    partition: int | None = Field(default=None, ge=0, description="the partition of that topic")
    offset: int | None = Field(default=None, ge=0, description="the offset in that partition")
    file: str | None = Field(default=None, description="the file that it concerns")
    right: str | None = Field(
        default=None, description="of the kind denied: the right that is missing, WRITE on a topic"
    )
    output: str | None = Field(
        default=None, description="of the kind refused: the topic that does not take an output"
    )

    @model_validator(mode="after")
    def _says_what(self) -> Self:
        if self.kind == "denied" and not self.right:
            raise ValueError("a failure of the kind denied names the right")
        if self.kind == "refused" and not self.output:
            raise ValueError("a failure of the kind refused names the output")
        return self


class Notice(Message):
    """A notice that the design did something unasked, and goes on. Since version 2.

    ``offset-reset``: a position was gone from the log, and reading goes on elsewhere; one line for
    each partition. ``recovered``: the engine failed and began again inside its process; ``from`` is
    where a partition was read to, ``to`` where it is read again from.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                _needs(
                    "offset-reset",
                    topic={"type": "string"},
                    partition=_NUMBER,
                    **{"from": _NUMBER, "to": _NUMBER},
                )
            ]
        }
    )

    type: Literal["notice"] = "notice"
    kind: NoticeKind = Field(description="what happened")
    topic: str | None = Field(default=None, description="the topic that it concerns")
    partition: int | None = Field(default=None, ge=0, description="the partition of that topic")
    begin: int | None = Field(default=None, ge=0, alias="from", description="the position before")
    end: int | None = Field(default=None, ge=0, alias="to", description="the position after")
    message: str = Field(default="", description="for people")

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        place = (self.topic, self.partition, self.begin, self.end)
        if self.kind == "offset-reset" and None in place:
            raise ValueError("a notice of the kind offset-reset has topic, partition, from and to")
        return self


Request = Annotated[
    Hello | Start | Query | Measure | Lag | Workers | Activate | Deactivate | Stop,
    Field(discriminator="type"),
]
Reply = Annotated[
    HelloReply
    | Ready
    | StandingBy
    | Unsupported
    | Error
    | Value
    | NotReady
    | Measured
    | Lagging
    | WorkersReply
    | Deactivated
    | Stopped
    | Failed
    | Notice,
    Field(discriminator="type"),
]
REQUEST: TypeAdapter[Request] = TypeAdapter(Request)
REPLY: TypeAdapter[Reply] = TypeAdapter(Reply)

# The replies that a request may have; ``failed`` may answer each request, and ``notice`` none.
REPLIES_TO: dict[type[Message], tuple[type[Message], ...]] = {
    Hello: (HelloReply,),
    Start: (Ready, StandingBy, Unsupported, Error),
    Query: (Value, NotReady, Error),
    Measure: (Measured, Error),
    Lag: (Lagging, Error),
    Workers: (WorkersReply, Error),
    Activate: (Ready, Error),
    Deactivate: (Deactivated, Error),
    Stop: (Stopped, Error),
}


def version_of(reply: Message) -> int:
    """Return the version of the protocol in which a reply can be said first."""
    if isinstance(reply, Failed):
        fields = (reply.topic, reply.partition, reply.offset, reply.file, reply.right, reply.output)
        is_new = reply.kind in LATER_KINDS or any(field is not None for field in fields)
        return 2 if is_new else 1
    return 2 if isinstance(reply, Notice) else 1
