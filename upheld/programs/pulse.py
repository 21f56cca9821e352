"""pulse: signals of robots, and a table of names -> `frequency`, a row a robot.

It reads `motors`, `grippers`, `controllers` and the table `robots`. The key of every topic is the
robot. Records of the inputs lie where Kafka's default partitioner (murmur2) puts it; librdkafka's
default partitioner is another one (CRC32). All values are JSON. A signal is ``{"robot", "ts_ms",
"points"}``, a row of `robots` ``{"name"}``. A row of `frequency` is ``{"robot", "name", "points",
"first_points", "first_ts_ms", "last_ts_ms", "rate_mhz", "applied": {role: {"partition",
"offset"}}}``.

The signals of all three topics are one stream, summed once: `points` of all, and `first_points` of
those with the least ts_ms. rate_mhz = floor((points - first_points) * 1,000,000 / (last_ts_ms -
first_ts_ms)), and 0 while both are the same moment. `name` is that of a row of `robots`, null
before the first row and after a tombstone. A new name alone may be sent on with the next signal.

`applied` holds, of each topic that has told of the robot, the last record counted in. Topics have
no mutual order, so a row is legal if some number of the robot's first records of each topic gives
it. No row goes back in any of the topics. A row may be written again as it is, under exactly_once
too: an update need not emit just once.

`frequency` is compacted and *is* the table: its last rows answer `query` (table `frequency`). A
design may name another topic of its own that is the table (`ready.table`). It has a tenth of the
input's partitions. A design may keep one topic more, as narrow, for the records that it moves to
fewer partitions. A record with a null key, or that cannot be read, stops the design: `poison`.

Parameters: commit_interval_ms.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from upheld.history.events import Record
from upheld.programs.contract import (
    Diagnose,
    Diagnosis,
    Place,
    Program,
    Progress,
    State,
    States,
    Unreadable,
    Value,
    no_lineage,
)
from upheld.reading import loaded

SIGNALS: Final = ("motors", "grippers", "controllers")
ROBOTS: Final = "robots"
ROLES: Final = (*SIGNALS, ROBOTS)
APPLIED_FIELDS: Final = {"partition", "offset"}

Kind = TypeVar("Kind", int, str)


class Counted(NamedTuple):
    """The content of a row, without its robot and the positions."""

    name: str | None
    points: int
    first_points: int
    first_ts_ms: int | None
    last_ts_ms: int
    rate_mhz: int


class Frequency(NamedTuple):
    """A row of `frequency`."""

    robot: str
    name: str | None
    points: int
    first_points: int
    first_ts_ms: int
    last_ts_ms: int
    rate_mhz: int
    applied: tuple[Place, ...]  # role, partition and offset, sorted

    @property
    def counted(self) -> Counted:
        """The row without its robot and the positions."""
        return Counted(*self[1:-1])


@dataclass(frozen=True)
class Tally:
    """The sums of some signals."""

    points: int = 0
    first_points: int = 0
    first_ts_ms: int | None = None
    last_ts_ms: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        """Return the sums of both."""
        if self.first_ts_ms is None or other.first_ts_ms is None:
            return other if self.first_ts_ms is None else self
        first_ms = min(self.first_ts_ms, other.first_ts_ms)
        first = sum(each.first_points for each in (self, other) if each.first_ts_ms == first_ms)
        return Tally(
            self.points + other.points, first, first_ms, max(self.last_ts_ms, other.last_ts_ms)
        )

    def named(self, name: str | None) -> Counted:
        """Return the content of a row with these sums."""
        lasted_ms = self.last_ts_ms - (self.first_ts_ms or 0)
        rate = (self.points - self.first_points) * 1_000_000 // lasted_ms if lasted_ms else 0
        return Counted(
            name, self.points, self.first_points, self.first_ts_ms, self.last_ts_ms, rate
        )


def role_of(record: Record) -> str:
    """Return the role of the topic that a record lies in."""
    return record.topic.rsplit("-", 1)[1]


def said(record: Record) -> Tally | str | None:
    """Return the signal or the name of an input record; None for the end of a name.

    Raises:
        Unreadable: The record is none of the contract's.
    """
    try:
        return _said(record)
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{record.at} is no record of {role_of(record)}: {error!r}") from None


def _said(record: Record) -> Tally | str | None:
    value = loaded(b"null" if record.value is None else record.value)
    if record.key is None:
        raise ValueError("it has no key")
    if role_of(record) == ROBOTS:
        return None if value is None else _typed(value, "name", str)
    points = _typed(value, "points", int)
    ts_ms = _typed(value, "ts_ms", int)
    if _typed(value, "robot", str).encode() != record.key:
        raise ValueError("it has another key than its value")
    return Tally(points, points, ts_ms, ts_ms)


def _typed(value: Mapping[str, object], name: str, kind: type[Kind]) -> Kind:
    """Return a field of just this type; a truth value is no number."""
    field = value[name]
    if type(field) is not kind:
        raise TypeError(f"{name} is no {kind.__name__}")
    return field


class Merged:
    """The rows that a robot may show.

    There is one for each number of its records read of each topic. It is made from the whole log,
    aborted records too.
    """

    # A last row has to hold all of the signals; a name may come with the next one.
    due = len(SIGNALS)

    def __init__(self, inputs: Iterable[Record]) -> None:
        # Place -> the record, and the number of its key's records up to it.
        self._at: dict[Place, tuple[Record, int]] = {}
        self._read: dict[bytes, dict[str, list[Record]]] = {}
        self._tallies: dict[tuple[bytes, str], list[Tally]] = {}
        self._names: dict[bytes, list[str | None]] = {}
        for record in inputs:
            self._add(record)

    def _add(self, record: Record) -> None:
        """Count a record in, if it is visible and can be read."""
        role = role_of(record)
        key = record.key or b""
        known = self._read.setdefault(key, {each: [] for each in ROLES})[role]
        if record.visible:
            try:
                content = said(record)
            except Unreadable:
                return
            known.append(record)
            if isinstance(content, Tally):
                tallies = self._tallies.setdefault((key, role), [Tally()])
                tallies.append(tallies[-1] + content)
            else:
                self._names.setdefault(key, [None]).append(content)
        self._at[Place(role, record.partition, record.offset)] = (record, len(known))

    def below(self, key: bytes, offsets: dict[str, int]) -> Progress:
        """Count the robot's records below committed offsets (topic-partition -> offset)."""

        def is_below(record: Record) -> bool:
            return record.offset < offsets.get(f"{record.topic}-{record.partition}", 0)

        read = self._read[key]
        return tuple(sum(map(is_below, read[role])) for role in ROLES)

    def whole(self, key: bytes) -> Progress:
        """Count the records of a robot."""
        return tuple(len(self._read.get(key, {}).get(role, ())) for role in ROLES)

    def row(self, key: bytes, progress: Progress) -> Counted:
        """Return the robot's row after so many records of each topic."""
        signals = zip(SIGNALS, progress[: self.due], strict=True)
        tally = sum((self._tallies[key, role][count] for role, count in signals if count), Tally())
        return tally.named(self._names.get(key, [None])[progress[-1]])

    def progress(self, key: bytes, value: Value) -> Progress | Diagnosis:
        """Return after how many records of each topic this is the row, or its anomaly."""
        row = Frequency._make(value)
        counts = dict.fromkeys(ROLES, 0)
        for position in row.applied:
            record, count = self._at.get(position, (None, 0))
            place = f"{position.topic}-{position.partition}@{position.offset}"
            if record is None or record.key != key:
                return Diagnosis("phantom", f"no record of the robot stands at {place}", record)
            if not record.visible:
                return Diagnosis("uncommitted-visible", f"{place} was aborted upstream", record)
            counts[position.topic] = count
        progress = tuple(counts.values())
        due = self.row(key, progress)
        if due == row.counted:
            return progress
        last = max(self.last(key, progress), key=lambda record: record.seen_ms)
        more = row.points - due.points
        name = "duplicated" if more > 0 else "lost" if more < 0 else "phantom"
        why = f"the records that it names give {tuple(due)}"
        return Diagnosis(name, why, last, State(key, due, last, (), ""))

    def last(self, key: bytes, progress: Progress) -> Iterator[Record]:
        """Go through the last records that such a row holds, one of each topic."""
        counts = zip(ROLES, progress, strict=True)
        return (self._read[key][role][count - 1] for role, count in counts if count)


ON_ITS_WAY: Final[Value] = ("not all of its signals",)


def model(inputs: Iterable[Record]) -> States:
    """Make two states of every robot that has a signal: on its way, and complete.

    Raises:
        Unreadable: A record is none of the contract's.
    """
    inputs = list(inputs)
    for record in inputs:
        said(record)
    merged = Merged(inputs)
    last: dict[bytes, Record] = {}
    for record in inputs:
        if role_of(record) != ROBOTS:
            last[record.key or b""] = record
    states: States = {}
    for key, record in last.items():
        values = (ON_ITS_WAY, merged.row(key, merged.whole(key)))
        states[key] = [State(key, value, record, (), "") for value in values]
    return states


def value_of(record: Record) -> Frequency:
    """Return the row of an output, or raise Unreadable."""
    key = (record.key or b"").decode(errors="replace")
    return stored_value(key, record.value or b"null", record.at)


def stored_value(key: str, value: str | bytes, where: str = "an answer") -> Frequency:
    """Return a row that stands under a key; `where` names its place.

    Raises:
        Unreadable: The row is none of the contract's.
    """
    try:
        row = loaded(value)
        applied = tuple(
            sorted(
                Place(role, place["partition"], place["offset"])
                for role, place in row["applied"].items()
            )
        )
        fields = set(row)
        are_places = all(set(place) == APPLIED_FIELDS for place in row["applied"].values())
        numbers = [row[name] for name in Counted._fields[1:]]
        numbers += [number for _, *place in applied for number in place]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"{where} is no row of the contract: {error!r}") from None
    if fields != set(Frequency._fields) or not applied or not are_places:
        raise Unreadable(f"{where} is no row of the contract: it has other fields")
    are_numbers = all(type(number) is int for number in numbers)
    if not are_numbers or not isinstance(row["name"], str | None):
        raise Unreadable(f"{where} is no row of the contract: a field is of another type")
    if row["robot"] != key:
        raise Unreadable(f"{where} has another key than its value")
    return Frequency(**{**row, "applied": applied})


def diagnosis(inputs: list[Record]) -> Diagnose:
    """Return a function that names the anomaly of a row of a robot without a signal."""
    del inputs
    return lambda _key, _value, _states: Diagnosis("phantom", "no signal tells of this robot")


PULSE = Program(
    name="pulse",
    reads=SIGNALS[0],
    others=(*SIGNALS[1:], ROBOTS),
    writes="frequency",
    conflates=True,
    repeats=True,
    parameters={"commit_interval_ms": 100},
    model=model,
    value_of=value_of,
    lineage_of=no_lineage,
    diagnosis=diagnosis,
    merged=Merged,
    stored_value=stored_value,
    narrows=10,
)
