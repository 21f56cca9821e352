"""Checks of lag: a design is as far behind as it says, and at last no longer.

It also has to name what it lacks: input, or half a file.
"""

from collections.abc import Iterator, Mapping

from upheld.checks.needs import Need
from upheld.checks.places import stop_names_file, stop_names_partition
from upheld.checks.registry import NO_STATE, OUTPUTS, check
from upheld.checks.view import resets_of, view_of
from upheld.history import History
from upheld.history.events import Committed, Instance, Lag, Mark, Record
from upheld.history.evidence import Gap, TornFile, Truncation
from upheld.history.marks import Happening
from upheld.verdicts import Anomaly, Inconclusive, NotOffered

AGE_MS = 1_000  # of an answer: a design may ask Kafka once a second


@check(
    "lag",
    anomalies=("misstated", *NO_STATE),
    needs=OUTPUTS,
    by_last_value=True,
)
def lag(history: History, application: str) -> list[Anomaly]:
    """Check that the lag that a design states is between two bounds.

    It is no less than the number of records that had waited for a second. It is no more than all
    that was not committed then. It counts offsets, of all partitions together, from those that the
    group has committed: records that were read and not committed will be read again. Markers may
    count or not. Inconclusive if the design was never behind, or always.
    """
    view = view_of(history, application)
    if history.begun.progress == "none":
        raise NotOffered("its offsets are information, so Kafka does not know how far behind it is")
    given = [said for said in history.of(Lag) if said.application == application]
    if not given:
        raise NotOffered("the design does not say how far it is behind (capability lag)")
    found = []
    bounds = []
    for said in given:
        then_ms = said.at_ms - AGE_MS
        before = next((e.committed for e in reversed(given) if e.at_ms <= then_ms), {})
        least = sum(
            record.seen_ms <= then_ms
            and record.offset >= said.committed[f"{record.topic}-{record.partition}"]
            for record in view.inputs
            if record.visible
        )
        most = sum(end - before.get(place, 0) for place, end in said.high_watermark.items())
        bounds.append((least, most))
        if not least <= said.offsets <= most:
            text = (
                f"{said.name} says that it is {said.offsets} offsets behind at {said.at_ms} ms, "
                "and by Kafka it is"
            )
            found.append(Anomaly(name="misstated", text=f"{text} {least} to {most}"))
    if not found and min(most for _, most in bounds) >= max(least for least, _ in bounds):
        raise Inconclusive("it was never far behind, or always, so whatever it says is true")
    return [*view.foreign, *found]


@check(
    "caught-up",
    anomalies=("stuck", *NO_STATE),
    needs=OUTPUTS | {Need.COMMIT},
    by_last_value=True,
)
def caught_up(history: History, application: str) -> list[Anomaly]:
    """Check that the offsets committed at last are the ends of the log, with markers.

    Inconclusive if every end is a record. A design that stays behind is ``stuck``. A monitor shows
    its lag for ever, and a procedure that waits until nothing is left never goes on.
    """
    view = view_of(history, application)
    look = next(
        e
        for e in reversed(list(history.of(Committed)))
        if e.application == application and e.high_watermark
    )
    ends = look.high_watermark or {}
    committed = look.offsets or {}
    last = {
        f"{record.topic}-{record.partition}": record for record in view.inputs if record.visible
    }
    behind = [
        Anomaly(
            name="stuck",
            text=_behind(place, committed.get(place, 0), end, last.get(place)),
            source=last[place].at if place in last else None,
        )
        for place, end in ends.items()
        if committed.get(place, 0) < end
    ]
    if not behind and all(
        place in last and last[place].offset + 1 == end for place, end in ends.items()
    ):
        raise Inconclusive(
            "every partition of the input ends in a record, so that there was nothing to pass"
        )
    return [*view.foreign, *behind]


def _behind(place: str, committed: int, end: int, last: Record | None) -> str:
    """Return how far a committed offset is behind the end of its partition, and behind what."""
    said = f"{place}: committed is {committed}, and the log ends at {end}"
    if last is None or last.offset < committed:
        said += "; what lies between are markers of transactions and what was aborted"
    return said


@check(
    "gap-named",
    anomalies=("lost", "stuck"),
    needs=OUTPUTS | {Need.GAP},
    by_last_value=True,
)
def gap_named(history: History, application: str) -> list[Anomaly]:
    """Check that a design with a gap in its input said where, by a stop or by notices.

    A loud stop names a partition with a gap, in fields or in any words. A design that goes on says
    `offset-reset` for each of these partitions, and goes on at the first record that is left.
    ``lost``: it went on, and nobody knows that records are missing.
    """
    view = view_of(history, application)
    gaps = next(
        Truncation.of(mark).gaps
        for mark in reversed(list(history.of(Mark)))
        if mark.happening is Happening.INPUT_TRUNCATED
    )
    stops = [
        e for e in history.of(Instance) if e.application == application and e.event == "failed"
    ]
    if not stops:
        told = resets_of(history, application)
        return [*view.foreign, *_not_told(gaps, told)]
    if not any(stop_names_partition(stops[-1], place) for place in gaps):
        said = f"it stopped and did not say where: {stops[-1].detail}"
        return [*view.foreign, Anomaly(name="stuck", text=said)]
    return view.foreign


def _not_told(gaps: Mapping[str, Gap], told: Mapping[str, Gap]) -> Iterator[Anomaly]:
    """Go through the gaps that a design passed over in silence, or after which it left more out."""
    for place, gap in gaps.items():
        reset = told.get(place)
        if reset is None:
            text = (
                f"{place}: what lay from {gap.begin} to {gap.end - 1} was deleted before it was "
                "read, and it went on without a word"
            )
            yield Anomaly(name="lost", text=text)
        elif reset.end > gap.end or reset.begin > gap.begin:
            text = (
                f"{place}: what lay from {gap.begin} to {gap.end - 1} was deleted before it was "
                f"read, and it said that it went on at {reset.end} after {reset.begin}"
            )
            yield Anomaly(name="lost", text=text)


@check(
    "file-named",
    anomalies=("stuck", *NO_STATE),
    needs=OUTPUTS | {Need.TORN_FILE},
    by_last_value=True,
)
def file_named(history: History, application: str) -> list[Anomaly]:
    """Check that a design that stopped after one of its files was torn named the file.

    A file whose name is a number is named by its folder. An application without an adapter may
    name it anywhere in its log. Inconclusive if the design went on, and was not seen to read the
    file.
    """
    view = view_of(history, application)
    events = history.events
    at, torn = next(
        (n, TornFile.of(e).file)
        for n, e in enumerate(events)
        if isinstance(e, Mark) and e.happening is Happening.FILE_TORN
    )
    failed = (e for e in events[at:] if isinstance(e, Instance) and e.application == application)
    stop = next((e for e in failed if e.event == "failed"), None)
    marked = {e.happening for e in events[at:] if isinstance(e, Mark)}
    if stop is None and Happening.TORN_FILE_READ not in marked:
        raise Inconclusive(f"{torn} is torn, and no start was seen to read it")
    is_named = Happening.TORN_FILE_NAMED in marked
    if stop is None or is_named or stop_names_file(stop, torn):
        return view.foreign
    said = f"{torn} is torn, and it stopped without naming it: {stop.detail}"
    return [*view.foreign, Anomaly(name="stuck", text=said)]
