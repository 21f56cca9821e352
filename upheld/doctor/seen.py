"""The record of a visit: all that the doctor saw of an application."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from upheld.history.events import Record
from upheld.programs.shown import are_of_single_records

Reset = Literal["earliest", "latest"]
Isolation = Literal["read_committed", "read_uncommitted"]


class _Seen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Group(_Seen):
    """A group that it joined."""

    protocol: str
    members: int
    static: tuple[str, ...] = ()  # its group.instance.id, if it has some
    session_timeout_ms: int | None = None


class Topics(_Seen):
    """The topics of its requests, by their names on the broker."""

    given: dict[str, str]  # role -> the name that it was given
    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()  # asked for, and not there
    outside: tuple[str, ...] = ()  # written outside of any transaction


class Commits(_Seen):
    """How it commits the offsets of its input."""

    by: tuple[str, ...] = ()  # offset_commit, txn_offset_commit
    count: int = 0
    usual_gap_ms: int | None = None  # between two of them, while records arrived
    done: int = 0  # records that the committed offsets are beyond
    due: int = 0  # records that it was given, and that no transaction has aborted
    ahead: bool | None = None  # of its outputs; None where that was not looked at


class Outputs(_Seen):
    """The records that it wrote to one output."""

    count: int = 0
    unreadable: int = 0  # values that are not of the format that is declared
    first_unreadable: str = ""
    aborted: int = 0  # outputs of records that no reader of committed data gets
    increasing: tuple[str, ...] = ()  # paths of numbers that grew with each output of a key
    traced: int = 0  # records whose id is in an output, and in it no id of another one

    def is_of_single_records(self, due: int) -> bool:
        """Return whether each of these seems to hang on one record, of so many."""
        return are_of_single_records(self.count, self.traced, self.increasing, due)


class Query(_Seen):
    """The answer for the key of its last output."""

    output: str  # its role
    key: str
    address: str
    status: int  # of HTTP; 0: no answer came
    said: str = ""
    last: str = ""  # the output that it has to be
    fits: bool = False


class End(_Seen):
    """How it ended after the signal."""

    signal: str
    seconds: float
    code: int | None  # None: it had to be killed
    members: int = 0  # that its group still has; a static one is to stay


class Seen(_Seen):
    """One visit.

    Attributes:
        ready_s: The seconds from its start until it was ready; None if it never was.
        ended_early: Its exit code, if it ended before it was told to.
        ran_s: The seconds from its start until it ended early, or was told to stop.
        is_stalled: Whether it stopped committing while records of its input waited.
        log: The last lines of its log.
        breach: The first thing that a client sent and no broker takes.
        peers: Addresses that it is connected to, and that are neither the broker nor declared.
        refused: Addresses and names that it asked for, and that its fence keeps it from.
    """

    application_id: str
    ready_by: str
    ready_s: float | None = None
    ended_early: int | None = None
    ran_s: float = 0.0
    is_stalled: bool = False
    groups: dict[str, Group] = {}
    transactions: dict[str, int] = {}  # transactional id -> timeout in milliseconds
    isolation: tuple[Isolation, ...] = ()
    reset: Reset | None = None
    topics: Topics
    commits: Commits = Commits()
    outputs: dict[str, Outputs] = {}  # by the role of the output
    query: Query | None = None  # None: it was not asked
    end: End | None = None
    breach: str = ""
    peers: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    versions: dict[str, int] = {}  # API -> the highest version that it used
    log: tuple[str, ...] = ()

    @property
    def shape(self) -> Literal["map", "fold"]:
        """The shape that its outputs have; a map if there is no output.

        Outputs that may hang on several records are taken for those of a fold, which may skip
        states. Less is compared then, and nothing that would be wrong of a map.
        """
        written = (each for each in self.outputs.values() if each.count)
        is_map = all(each.is_of_single_records(self.commits.due) for each in written)
        return "map" if is_map else "fold"

    @property
    def output_count(self) -> int:
        """How many records all outputs have together."""
        return sum(each.count for each in self.outputs.values())


class Visit(NamedTuple):
    """A visit, and the records that a reader of committed data is given.

    A model may judge them.
    """

    seen: Seen
    inputs: Sequence[Record]
    outputs: Sequence[Record]
    topics: Mapping[str, str] = {}  # role -> topic
