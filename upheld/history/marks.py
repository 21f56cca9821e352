"""The codes of marks, and of looks at the outputs' ends.

Checks read the codes, and never the text beside them. A text is for people and may be worded anew.
A history that was recorded before there were codes is read by its texts, which are those of this
table.
"""

import re
from enum import StrEnum
from typing import Self

from upheld.families import Family

_WORD = re.compile(r"\{\w+\}")


class Happening(StrEnum):
    """An act or event that a mark is evidence of.

    Its value is the code. It has the family of its fault, if it is one, and its text.
    """

    family: Family | None
    text: str

    def __new__(cls, code: str, family: Family | None, text: str) -> Self:
        """Make a member whose value is the code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.family = family
        member.text = text
        return member

    # The instance is struck at a moment.
    TRANSACTION_OPEN = "transaction-open", Family.PROCESS, "with a transaction open"
    SECOND_TRANSACTION_OPEN = (
        "second-transaction-open",
        Family.PROCESS,
        "with a second transaction open",
    )
    BETWEEN_OUTPUT_AND_COMMIT = (
        "between-output-and-commit",
        Family.PROCESS,
        "between output and commit",
    )
    BETWEEN_STORE_AND_COMMIT = (
        "between-store-and-commit",
        Family.PROCESS,
        "between store and commit",
    )
    BETWEEN_STAGES = "between-stages", Family.PROCESS, "between its stages"
    AFTER_COMMIT = "after-commit", Family.PROCESS, "after a commit"
    EVENTS_WAITING = "events-waiting", Family.PROCESS, "with events waiting"
    WORKER_KILLED = "worker-killed", Family.PROCESS, "{which} is killed"
    SLEPT_THROUGH_ABORT = (
        "slept-through-abort",
        Family.PROCESS,
        "its transaction was aborted while it was paused",
    )
    CRASH_POINT = "crash-point", Family.PROCESS, "struck at its {api}: {side}"

    # A request or its answer is struck.
    REQUEST_LOST = "request-lost", Family.REQUEST, "its {request} is lost"
    REQUEST_HELD = "request-held", Family.REQUEST, "its {request} is held"
    REQUEST_REFUSED = "request-refused", Family.REQUEST, "its {request} is refused"
    ANSWER_LOST = "answer-lost", Family.REQUEST, "the answer to its {request} is lost"
    ANSWER_HELD = "answer-held", Family.REQUEST, "the answer to its {request} is held"
    APPLIED_AND_REFUSED = (
        "applied-and-refused",
        Family.REQUEST,
        "its {request} is applied, and refused",
    )
    ARRIVED_LATE = "arrived-late", Family.REQUEST, "what was held arrives late"
    SILENCE_GIVEN_UP = "silence-given-up", Family.REQUEST, "a silent connection is given up"

    # Members come and go.
    MEMBER_DIED = "member-died", Family.MEMBERSHIP, "an instance died beside others"
    SECOND_DEPLOYMENT = (
        "second-deployment",
        Family.MEMBERSHIP,
        "two deployments under the same ids",
    )
    CLUSTERS_SWITCHED = "clusters-switched", Family.MEMBERSHIP, "another cluster takes over"

    # Brokers
    BROKER_DIED = (
        "broker-died",
        Family.BROKER,
        "the broker died in the middle of it, and came back",
    )
    COORDINATOR_MOVED = (
        "coordinator-moved",
        Family.BROKER,
        "its coordinator died in the middle of it, and another node coordinates it",
    )
    LEADER_SILENT = "leader-silent", Family.BROKER, "with a leader of its outputs silent"
    BROKER_OUT_OF_REACH = "broker-out-of-reach", Family.BROKER, "the broker is out of reach"
    OUTPUTS_REFUSED = "outputs-refused", Family.BROKER, "its outputs refused"

    # Stores
    STORE_LOCKED = "store-locked", Family.STORE, "the store is locked"
    STORE_SLOW = "store-slow", Family.STORE, "the store is slow"
    STORE_DOWN = "store-down", Family.STORE, "the store is down"
    STORE_FULL = "store-full", Family.STORE, "the store is full"

    # Disks
    DISK_FULL = "disk-full", Family.DISK, "no room is left on its disks"
    FILE_TORN = "file-torn", Family.DISK, "a file is torn"
    DISK_WIPED = "disk-wiped", Family.DISK, "wiped"
    DISK_SET_BACK = "disk-set-back", Family.DISK, "disks set back"
    UNSYNCED_LOST = "unsynced-lost", Family.DISK, "rolled back to what was synced"

    # The clock
    CLOCK_JUMPED = "clock-jumped", Family.CLOCK, "the wall clock jumps"

    # The input and the table
    PARTITIONS_ADDED = "partitions-added", Family.INPUT, "partitions were added to its input"
    INPUT_REMADE = "input-remade", Family.INPUT, "its input was deleted and made anew"
    INPUT_TRUNCATED = (
        "input-truncated",
        Family.INPUT,
        "some of its input fell off the log before it was read",
    )
    TABLE_COMPACTED = "table-compacted", Family.INPUT, "its table was compacted"

    # No faults: what else had to happen
    STARTED_COLD = "started-cold", None, "started with nothing prepared"
    START_REFUSED = "start-refused", None, "refused to start"
    RELEASE_STARTED = "release-started", None, "the {which} release starts after the other one"
    PLANNED_CHANGE = "planned-change", None, "{setting} becomes {value}"
    INPUT_SHARED = "input-shared", None, "the input is shared"
    SESSION_SET = "session-set", None, "the session of the group was set"
    TIMEOUT_SHORTENED = (
        "timeout-shortened",
        None,
        "{timeout} shortened from {asked} to {given} ms by the proxy",
    )
    INPUT_LEFT = "input-left", None, "stopped in the middle of its input"
    TORN_FILE_READ = "torn-file-read", None, "the torn file was read"
    TORN_FILE_NAMED = "torn-file-named", None, "its log names the torn file"
    RECOVERED = "recovered", None, "recovered"
    ROWS_GONE_SOON = "rows-gone-soon", None, "rows have gone right after they came"
    ROWS_MOVED = "rows-moved", None, "rows have moved across the partitions of their partners"


class Look(StrEnum):
    """A moment at which the ends of the outputs are recorded for a check."""

    BEFORE_ZOMBIE = "before-the-zombie-resumes"
    HANDED_OVER = "between-two-clusters"

    @property
    def text(self) -> str:
        """Return the code as words."""
        return self.value.replace("-", " ")


_PATTERNS = [
    (re.compile(r"(?!the answer )\w.*?".join(map(re.escape, _WORD.split(each.text)))), each)
    for each in Happening
]


def happening_of(text: str) -> Happening | None:
    """Return a mark's code by its text, for histories older than the codes."""
    return next((each for pattern, each in _PATTERNS if pattern.fullmatch(text)), None)


def look_of(reason: str) -> Look | None:
    """Return a look's code by its text, for histories older than the codes."""
    return next((each for each in Look if each.text == reason), None)
