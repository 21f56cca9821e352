"""The parts of every program: a contract in words, and a model.

The words stand in the docstring of the program's module. The model is a pure fold. It turns the
input, as it stands in the log, into the outputs that a right design may show. These are the states
of every key in order, each with the input record that caused it. It never sees a design's output.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from upheld.history.events import Record

if TYPE_CHECKING:
    from upheld.programs.interleavings import Interleavings

# The content of an output or state in a canonical form, so that values compare. Each program has
# fields of its own.
Value = tuple[object, ...]
Progress = tuple[int, ...]  # the number of a key's records that a row holds, of each topic

GONE: Final[Value] = ("a tombstone",)  # the value of a tombstone
NOTHING: Final[Value] = ("nothing",)  # due where no output has been that could be deleted
# The role of the topic for records that cannot be read, if an application has one.
DEAD_LETTERS: Final = "dead_letters"


# Makes a named tuple of all its fields, `made(Place, (topic, partition, offset))`, without the call
# of a constructor: that takes three times as long, and a row makes tens of thousands of tuples.
made: Final = tuple.__new__


class Place(NamedTuple):
    """The place of a record in the log."""

    topic: str  # or its role
    partition: int
    offset: int

    def __repr__(self) -> str:
        """Write it as a plain tuple: an anomaly shows values so."""
        return tuple.__repr__(self)


class Hop(NamedTuple):
    """A position from which a record was read on its way, with the id of the topic."""

    topic: str
    partition: int
    offset: int
    topic_id: bytes  # empty if it is not known

    def __repr__(self) -> str:
        """Write it as a plain tuple: an anomaly shows values so."""
        return tuple.__repr__(self)

    @property
    def place(self) -> Place:
        """The place without the id of the topic."""
        return made(Place, self[:3])


Chain = tuple[Hop, ...]


class State(NamedTuple):
    """One state of one key, as a right design may show it.

    ``chain`` and ``envelope_id`` are the lineage that its output carries. A result of a join has a
    record of the other table ``beside`` its own, if it met one. It is a tuple because a join makes
    tens of thousands of them.
    """

    key: bytes
    value: Value
    source: Record
    chain: Chain
    envelope_id: str
    beside: Record | None = None

    @property
    def sources(self) -> tuple[Record, ...]:
        """Every input record that it was made from."""
        return (self.source,) if self.beside is None else (self.source, self.beside)

    @property
    def deletion(self) -> Record:
        """The record that a tombstone is for."""
        return self.source if self.beside is None or self.source.value is None else self.beside


class Unreadable(Exception):
    """A record that the program's contract does not allow at all, and why."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def readable(inputs: Iterable[Record], read: Callable[[Record], object]) -> Iterator[Record]:
    """Go through the records that can be read."""
    for record in inputs:
        try:
            read(record)
        except Unreadable:
            continue
        yield record


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The anomaly of a wrong output: its name and reason.

    ``blame`` is the input that caused it, ``due`` the state that belongs in its place.
    """

    name: str
    why: str
    blame: Record | None = None
    due: State | None = None


class Lineage(NamedTuple):
    """The envelope's id and the chain that an output carries."""

    envelope_id: str | None
    chain: Chain


def no_lineage(_: Record) -> Lineage:
    """Return the lineage of a program whose outputs carry none."""
    return Lineage(None, ())


def key_of(record: Record) -> bytes:
    """Return the key of a record; an empty one for none."""
    return record.key or b""


States = dict[bytes, list[State]]
# Key, a value that is no state, the key's states.
Diagnose = Callable[[bytes, Value, list[State]], Diagnosis]


class Merge(Protocol):
    """The rows that one key may show if several topics without a mutual order make it.

    There is one row for each number of the key's records that are read of each topic. ``due`` is
    the number of topics, from the first, in which a last row has to be complete.
    """

    due: int

    def __init__(self, inputs: Iterable[Record]) -> None: ...

    def below(self, key: bytes, offsets: dict[str, int]) -> Progress:
        """Count the key's records below committed offsets (topic-partition -> offset)."""
        ...

    def whole(self, key: bytes) -> Progress:
        """Count the records of the key."""
        ...

    def last(self, key: bytes, progress: Progress) -> Iterator[Record]:
        """Go through the key's last records that such a row holds, one of each topic."""
        ...

    def progress(self, key: bytes, value: Value) -> Progress | Diagnosis:
        """Return after how many records of each topic this is the row, or its anomaly."""
        ...


@dataclass(frozen=True)
class Program:
    """A contract in executable form.

    Attributes:
        name: The program's name.
        reads: The role of the topic that it reads.
        writes: The role of the topic that it writes.
        conflates: Whether outputs may skip states; they never invent one.
        parameters: Name -> usual value.
        model: Makes the states of the input.
        value_of: Reads an output.
        lineage_of: Reads the lineage of an output.
        diagnosis: Makes a diagnosis of wrong outputs from the whole input log, aborted records too.
        holds_back: Whether records that are read and committed may wait before they show.
        repeats: Whether a row may be written again as it is: its contract does not say that each
            update emits once.
        items: The states that one output's value shows, in order.
        address: A part of a value that few other values of a key share, quicker to hash than the
            whole. Values are looked up by it.
        beside: The role of the second topic of a join.
        broadcast: Whether all of the second topic is read at every start, and no group commits it.
        others: The roles that are read beside the first one: of a program that is merged, or of an
            application with several inputs.
        merged: The rows of a merged program. Its states say only whether a row is complete.
        stored_value: Reads a key's value in a store or in an answer, as ``value_of`` reads an
            output.
        upstream: An earlier stage of the same application, with its own outputs and stored states.
        narrows: The number of input partitions for each output partition.
        further: The roles of its outputs beside the one that it `writes`. A history is judged once
            for each of them (`upheld.history.outputs`).
        key_of: Makes the key of an output, by which it is found among the states.
        is_last_alone: Whether of a key's outputs only the last one is known. Its states are then
            one that stands for all others, and the last one.
        interleaved: What a fold of several inputs may show, made of the whole input log, aborted
            records too, and of its states, which are those in the order of timestamps alone.
        rank_of: Reads the number that increases with each state of a key, if one is declared, from
            an output or from the value of a state. It is None if there is none.
        is_shared_out: Whether the states of a key are kept apart by the input partition that they
            come of, because nothing orders these.
    """

    name: str
    reads: str
    writes: str
    conflates: bool
    parameters: dict[str, int | str]
    model: Callable[[Iterable[Record]], States]
    value_of: Callable[[Record], Value]
    lineage_of: Callable[[Record], Lineage]
    diagnosis: Callable[[list[Record]], Diagnose] = field(repr=False)
    holds_back: bool = False
    repeats: bool = False
    items: Callable[[Value], list[Value]] = lambda value: [value]
    address: Callable[[Value], Hashable] = lambda value: value
    beside: str = ""
    broadcast: bool = False
    others: tuple[str, ...] = ()
    merged: type[Merge] | None = None
    stored_value: Callable[[str, str], Value] | None = None
    upstream: "Program | None" = None
    narrows: int = 1
    further: tuple[str, ...] = ()
    key_of: Callable[[Record], bytes] = key_of
    is_last_alone: bool = False
    interleaved: "Callable[[list[Record], States], Interleavings] | None" = None
    is_shared_out: bool = False
    rank_of: Callable[[Record | Value], float | None] | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The roles that are read."""
        return (self.reads, *((self.beside,) if self.beside else ()), *self.others)

    @property
    def commits(self) -> tuple[str, ...]:
        """The roles in which committed offsets say how far the input is done."""
        return (self.reads,) if self.broadcast else self.inputs

    @property
    def results(self) -> tuple[str, ...]:
        """The roles of its own outputs, the first one first."""
        return (self.writes, *self.further)

    @property
    def topics(self) -> dict[str, str]:
        """Role -> input or output."""
        return dict.fromkeys(self.inputs, "input") | {
            role: "output" for stage in self.stages for role in stage.results
        }

    @property
    def stages(self) -> "tuple[Program, ...]":
        """The stages of the application, the last one first: that is this program."""
        return (self,) if self.upstream is None else (self, self.upstream)
