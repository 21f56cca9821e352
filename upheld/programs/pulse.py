"""pulse: `motors`, `grippers`, `controllers` (key = robot) and the table `robots` (key = robot) ->
`frequency` (key = robot).

A signal is ``{"robot", "ts_ms", "points"}``, a row of `robots` ``{"name"}``, of `frequency`
``{"robot", "name", "points", "first_points", "first_ts_ms", "last_ts_ms", "rate_mhz", "applied":
{role: {"partition", "offset"}}}``, all JSON. The signals of all three topics are one stream, summed
once: `points` of all, `first_points` of those with the least ts_ms, and rate_mhz = floor((points -
first_points) * 1,000,000 / (last_ts_ms - first_ts_ms)), 0 while both are the same moment. `name` is
that of a row of `robots`, null before the first and after a tombstone; a new name alone may be sent
on with the next signal. `applied` holds, of each topic that has told of the robot, the last record
counted in. Topics have no mutual order, so a row is legal where some number of the robot's first
records of each topic gives it; no row goes back in any of them. `frequency` is compacted and *is*
the table: its last rows answer `query` (table `frequency`), and a design may name another topic of
its own that is (`ready.table`). It has a tenth of the input's partitions. A design may keep one
topic more, as narrow, for what it moves to fewer partitions. A record with a null key, or that
cannot be read, stops the design: `poison`. Parameters: commit_interval_ms.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from upheld.history.events import Record
from upheld.programs.contract import Diagnose, Diagnosis, Program, State, States, Unreadable, loaded

SIGNALS: Final = ("motors", "grippers", "controllers")
ROBOTS: Final = "robots"
ROLES: Final = (*SIGNALS, ROBOTS)
ROW: Final = (
    "robot",
    "name",
    "points",
    "first_points",
    "first_ts_ms",
    "last_ts_ms",
    "rate_mhz",
    "applied",
)
Progress = tuple[int, ...]  # how many of a robot's records of each topic, in the order of ROLES


@dataclass(frozen=True)
class Tally:
    """What some signals come to."""

    points: int = 0
    first_points: int = 0
    first_ts_ms: int | None = None
    last_ts_ms: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        """Count both."""
        if self.first_ts_ms is None or other.first_ts_ms is None:
            return other if self.first_ts_ms is None else self
        first_ms = min(self.first_ts_ms, other.first_ts_ms)
        first = sum(each.first_points for each in (self, other) if each.first_ts_ms == first_ms)
        return Tally(
            self.points + other.points, first, first_ms, max(self.last_ts_ms, other.last_ts_ms)
        )

    @property
    def row(self) -> tuple[Any, ...]:
        """Points to rate_mhz, as a row has them."""
        lasted_ms = self.last_ts_ms - (self.first_ts_ms or 0)
        rate = (self.points - self.first_points) * 1_000_000 // lasted_ms if lasted_ms else 0
        return self.points, self.first_points, self.first_ts_ms, self.last_ts_ms, rate


def role_of(record: Record) -> str:
    """Which of the four topics a record lies in."""
    return record.topic.rsplit("-", 1)[1]


def said(record: Record) -> Tally | str | None:
    """What an input record says: a signal, or a name; Unreadable where it is none of the
    contract's.
    """
    try:
        value = None if record.value is None else loaded(record.value)
        if record.key is None:
            raise ValueError("it has no key")  # noqa: TRY301
        if role_of(record) == ROBOTS:
            return None if value is None else _typed(value, "name", str)
        points, ts_ms = _typed(value, "points", int), _typed(value, "ts_ms", int)
        if _typed(value, "robot", str).encode() != record.key:
            raise ValueError("it has another key than its value")  # noqa: TRY301
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{record.at} is no record of {role_of(record)}: {error!r}") from None
    return Tally(points, points, ts_ms, ts_ms)


def _typed(value: Any, name: str, kind: type) -> Any:
    if type(value[name]) is not kind:
        raise TypeError(f"{name} is no {kind.__name__}")
    return value[name]


class Merged:
    """Every row that a robot may show: one for each number of its records read of each topic.

    From the log, aborted ones too.
    """

    # A last row has to hold all of the signals; a name may come with the next one.
    due = len(SIGNALS)

    def __init__(self, inputs: Iterable[Record]) -> None:
        # place -> the record, and which of its key's it is
        self._at: dict[tuple[str, int, int], tuple[Record, int]] = {}
        self._read: dict[bytes, dict[str, list[Record]]] = {}
        self._tallies: dict[tuple[bytes, str], list[Tally]] = {}
        self._names: dict[bytes, list[str | None]] = {}
        for record in inputs:
            role, key = role_of(record), record.key or b""
            known = self._read.setdefault(key, {each: [] for each in ROLES})[role]
            if record.visible:
                try:
                    told = said(record)
                except Unreadable:
                    continue
                known.append(record)
                if isinstance(told, Tally):
                    tallies = self._tallies.setdefault((key, role), [Tally()])
                    tallies.append(tallies[-1] + told)
                else:
                    self._names.setdefault(key, [None]).append(told)
            self._at[role, record.partition, record.offset] = record, len(known)

    def below(self, key: bytes, offsets: dict[str, int]) -> Progress:
        """How many of a robot's records lie below these committed offsets."""
        read = self._read[key]
        counts = (
            sum(r.offset < offsets.get(f"{r.topic}-{r.partition}", 0) for r in read[role])
            for role in ROLES
        )
        return tuple(counts)

    def whole(self, key: bytes) -> Progress:
        """How many records there are of a robot."""
        return tuple(len(self._read.get(key, {}).get(role, ())) for role in ROLES)

    def row(self, key: bytes, progress: Progress) -> tuple[Any, ...]:
        """The robot's row after so many records, as `value_of` says it; without the positions,
        which say the same.
        """
        signals = zip(SIGNALS, progress[: self.due], strict=True)
        tally = sum((self._tallies[key, role][count] for role, count in signals if count), Tally())
        return (self._names.get(key, [None])[progress[-1]], *tally.row)

    def progress(self, key: bytes, value: tuple[Any, ...]) -> Progress | Diagnosis:
        """After how many records of each topic a robot's row is this one; or what it suffers
        from.
        """
        counts = dict.fromkeys(ROLES, 0)
        for role, partition, offset in value[-1]:
            record, count = self._at.get((role, partition, offset), (None, 0))
            place = f"{role}-{partition}@{offset}"
            if record is None or record.key != key:
                return Diagnosis("phantom", f"no record of the robot stands at {place}", record)
            if not record.visible:
                return Diagnosis("uncommitted-visible", f"{place} was aborted upstream", record)
            counts[role] = count
        progress = tuple(counts.values())
        due, last = self.row(key, progress), self._last(key, progress)
        if due == value[1:-1]:
            return progress
        more = value[2] - due[1]
        name = "duplicated" if more > 0 else "lost" if more < 0 else "phantom"
        return Diagnosis(
            name, f"the records that it names give {due}", last, State(key, due, last, (), "")
        )

    def _last(self, key: bytes, progress: Progress) -> Record:
        counts = zip(ROLES, progress, strict=True)
        return max(
            (self._read[key][role][n - 1] for role, n in counts if n), key=lambda r: r.seen_ms
        )


ON_ITS_WAY: Final = ("not all of its signals",)


def model(inputs: Iterable[Record]) -> States:
    """Two states of every robot that a signal tells of: on its way, and the row of all of its
    records.
    """
    inputs = list(inputs)
    for record in inputs:
        said(record)
    merged, last = Merged(inputs), dict[bytes, Record]()
    for record in inputs:
        if role_of(record) != ROBOTS:
            last[record.key or b""] = record
    return {
        key: [
            State(key, value, record, (), "")
            for value in (ON_ITS_WAY, merged.row(key, merged.whole(key)))
        ]
        for key, record in last.items()
    }


def value_of(record: Record) -> tuple[Any, ...]:
    """What a row says: robot, name, points to rate_mhz, and (role, partition, offset) of what is
    applied, sorted.
    """
    return stored_value(
        (record.key or b"").decode(errors="replace"), (record.value or b"null").decode(), record.at
    )


def stored_value(key: str, value: str, where: str = "an answer") -> tuple[Any, ...]:
    """What a row says; Unreadable where it is none of the contract's."""
    try:
        row = loaded(value)
        applied = sorted(
            (role, place["partition"], place["offset"]) for role, place in row["applied"].items()
        )
        fields, *parts = set(row), *(set(place) for place in row["applied"].values())
        numbers = [row[name] for name in ROW[2:-1]] + [
            number for _, *place in applied for number in place
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"{where} is no row of the contract: {error!r}") from None
    if fields != set(ROW) or not applied or any(part != {"partition", "offset"} for part in parts):
        raise Unreadable(f"{where} is no row of the contract: it has other fields")
    if not all(type(number) is int for number in numbers) or not isinstance(
        row["name"], str | None
    ):
        raise Unreadable(f"{where} is no row of the contract: a field is of another type")
    if row["robot"] != key:
        raise Unreadable(f"{where} has another key than its value")
    return (*(row[name] for name in ROW[:-1]), tuple(applied))


def diagnosis(inputs: list[Record]) -> Diagnose:
    """Name the anomaly of a row of a robot that nothing tells of."""
    del inputs
    return lambda _key, _value, _states: Diagnosis("phantom", "no signal tells of this robot")


PULSE = Program(
    name="pulse",
    contract=__doc__,
    reads=SIGNALS[0],
    others=(*SIGNALS[1:], ROBOTS),
    writes="frequency",
    conflates=True,
    parameters={"commit_interval_ms": 100},
    model=model,
    value_of=value_of,
    lineage_of=lambda _: (None, ()),
    diagnosis=diagnosis,
    merged=Merged,
    stored_value=stored_value,
    narrows=10,
)
