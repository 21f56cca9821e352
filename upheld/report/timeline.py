"""The timeline of a history, as text and as a picture.

It has lanes for faults, input, instances, their requests, commits and output.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from upheld.checks.view import view_of
from upheld.history import History
from upheld.history.events import Application, Committed, Connection, Instance, Mark, Record
from upheld.text import visible
from upheld.verdicts import Anomaly

COLUMNS = 72  # of the text
NAMES = 9  # characters of a lane's name
LEVELS = ".:+#"  # the signs for few to many
ALARM = "!"  # the sign of a fault, or of a record that an anomaly names
SIGNS = {  # of an instance's events; any other event has its first letter
    "started": "s",
    "ready": "R",
    "stopped": "|",
    "killed": "X",
    "failed": "F",
    "exited": "x",
    "active": "A",
}
ENDS = {"stopped", "killed", "failed", "exited"}
LOUD_SIGNS = {ALARM, SIGNS["killed"], SIGNS["failed"]}
# Of the picture, in pixels.
PICTURE = 960
LEFT = 110
ROW = 26
INK = "#44617b"
LOUD = "#c0392b"
PALE = "#d5dee6"


class Span(NamedTuple):
    """A time from its first to its last millisecond."""

    begin_ms: int
    until_ms: int


@dataclass(frozen=True)
class Moment:
    """An event at one time.

    It has a sign if it is more than one of many, and words that the picture shows for it.
    """

    at_ms: int
    words: str
    sign: str = ""


@dataclass(frozen=True)
class Lane:
    """The events of one thing, in order.

    Its spans say when the thing was there, if it was not there always.
    """

    name: str
    moments: list[Moment]
    spans: tuple[Span, ...] = ()


def lanes(history: History, anomalies: list[Anomaly]) -> list[Lane]:
    """Return the lanes in which something happened."""
    named = {a.source for a in anomalies} | {(a.got or "").rpartition(" at ")[2] for a in anomalies}
    applications = list(history.of(Application))
    end_ms = _end_ms(history)
    found = [Lane("faults", [Moment(m.at_ms, m.fault, ALARM) for m in history.of(Mark)])]
    for application in applications:
        prefix = f"{application.name} " if len(applications) > 1 else ""
        records = _records(history, application, prefix, named)
        lives = _lives(history, application, prefix, end_ms)
        acts = [_requests(history, application, prefix), _commits(history, application, prefix)]
        # The outputs stand below the acts that made them visible.
        found += [*records[:-1], *lives, *acts, records[-1]]
    return [lane for lane in found if lane.moments]


def _records(
    history: History, application: Application, prefix: str, named: set[str | None]
) -> list[Lane]:
    """Return the lanes of input, dead letters and output.

    Records that an anomaly names have a sign.
    """
    view = view_of(history, application.name)
    topics = {
        "input": {application.topics[role] for role in view.program.inputs},
        "letters": {letter.topic for letter in view.dead_letters},
        "output": {view.table, *(application.topics[role] for role in view.program.further)},
    }
    found = []
    for name, of in topics.items():
        records = {r.at: r for r in history.of(Record) if r.topic in of and r.visible}
        moments = [
            Moment(record.seen_ms, at, ALARM if at in named else "")
            for at, record in records.items()
        ]
        found.append(Lane(prefix + name, sorted(moments, key=lambda moment: moment.at_ms)))
    return found


def _lives(history: History, application: Application, prefix: str, end_ms: int) -> list[Lane]:
    """Return a lane for each instance."""
    by_name: dict[str, list[Instance]] = {}
    for event in history.of(Instance):
        if event.application == application.name:
            by_name.setdefault(event.name, []).append(event)
    return [_life(prefix + name, own, end_ms) for name, own in by_name.items()]


def _requests(history: History, application: Application, prefix: str) -> Lane:
    """Return the lane of the requests that change something, seen by the proxy."""
    connections = [e for e in history.of(Connection) if e.application == application.name]
    changes = sorted(change for connection in connections for change in connection.changed)
    moments = [
        Moment(at_ms, f"{fault} {api}".strip(), ALARM if fault else "")
        for at_ms, api, fault in changes
    ]
    return Lane(f"{prefix}wire", moments)


def _commits(history: History, application: Application, prefix: str) -> Lane:
    """Return the lane of the looks at the committed offsets."""
    looks = [
        event
        for event in history.of(Committed)
        if event.application == application.name and event.offsets is not None
    ]
    return Lane(
        f"{prefix}commits",
        [Moment(event.at_ms, "what was committed was looked at") for event in looks],
    )


def _life(name: str, own: list[Instance], end_ms: int) -> Lane:
    """Return the lane of an instance: its events, and when it was there."""
    spans = list[Span]()
    since_ms: int | None = None
    for event in own:
        if event.event in ENDS and since_ms is not None:
            spans.append(Span(since_ms, event.at_ms))
            since_ms = None
        elif event.event not in ENDS and since_ms is None:
            since_ms = event.at_ms
    if since_ms is not None:
        spans.append(Span(since_ms, end_ms))
    moments = [
        Moment(
            event.at_ms,
            f"{event.event} {event.detail}".strip(),
            SIGNS.get(event.event, event.event[0]),
        )
        for event in own
    ]
    return Lane(name, moments, tuple(spans))


def _end_ms(history: History) -> int:
    """Return the time of the last event."""
    happened: list[Instance | Mark | Committed] = [
        *history.of(Instance),
        *history.of(Mark),
        *history.of(Committed),
    ]
    return max([1, *(e.at_ms for e in happened), *(r.seen_ms for r in history.of(Record))])


def drawn(found: list[Lane]) -> Iterator[str]:
    """Draw the lanes in characters, a line each.

    `.` to `#` stand for few to many events, and `-` for an instance that is there. A sign hides all
    else in its place.
    """
    end_ms = _last_ms(found)
    for lane in found:
        cells = [" "] * COLUMNS
        for begin_ms, until_ms in lane.spans:
            for column in range(_column(begin_ms, end_ms), _column(until_ms, end_ms) + 1):
                cells[column] = "-"
        counts = [0] * COLUMNS
        for moment in lane.moments:
            counts[_column(moment.at_ms, end_ms)] += not moment.sign
        for column, count in enumerate(counts):
            if count:
                cells[column] = LEVELS[min(len(LEVELS) - 1, len(LEVELS) * count // max(counts))]
        for moment in lane.moments:
            if moment.sign:
                cells[_column(moment.at_ms, end_ms)] = moment.sign
        yield f"{visible(lane.name)[:NAMES]:<{NAMES}} {''.join(cells)}".rstrip()
    yield f"{'':<{NAMES}} 0{f'{end_ms / 1000:.1f} s':>{COLUMNS - 1}}"


def picture(found: list[Lane], title: str) -> str:
    """Draw the lanes as SVG.

    A browser shows words and time of an event under the mouse.
    """
    end_ms = _last_ms(found)
    height = ROW * (len(found) + 2)
    root = Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {PICTURE} {height}",
        style="font: 12px sans-serif; background: white",
    )
    SubElement(root, "text", x="8", y="18", style="font-weight: bold").text = visible(title)

    def x(at_ms: int) -> float:
        return LEFT + at_ms / end_ms * (PICTURE - LEFT - 12)

    for number, lane in enumerate(found, 1):
        top = ROW * number
        SubElement(root, "text", x="8", y=str(top + 17)).text = visible(lane.name)
        for begin_ms, until_ms in lane.spans:
            width = max(1.0, x(until_ms) - x(begin_ms))
            SubElement(root, "rect", _box(x(begin_ms), top + 9, width, 8, PALE))
        crowd = Counter(round(x(m.at_ms)) for m in lane.moments if not m.sign)
        for left, count in crowd.items():
            tall = 18 * (1 + math.log(count)) / (1 + math.log(max(crowd.values())))
            mark = SubElement(root, "rect", _box(left, top + 22 - tall, 1, tall, INK))
            SubElement(mark, "title").text = str(count)
        for moment in (m for m in lane.moments if m.sign):
            ink = LOUD if moment.sign in LOUD_SIGNS else INK
            mark = SubElement(root, "rect", _box(x(moment.at_ms), top + 4, 3, 18, ink))
            SubElement(mark, "title").text = f"{visible(moment.words)}, {moment.at_ms} ms"
    for at_ms in range(0, end_ms + 1, _step_ms(end_ms)):
        label = SubElement(
            root, "text", {"x": f"{x(at_ms):.1f}", "y": str(height - 8), "text-anchor": "middle"}
        )
        label.text = f"{at_ms / 1000:g} s"
    return tostring(root, encoding="unicode")


def _box(left: float, top: float, width: float, height: float, ink: str) -> dict[str, str]:
    return {
        "x": f"{left:.1f}",
        "y": f"{top:.1f}",
        "width": f"{width:.1f}",
        "height": f"{height:.1f}",
        "fill": ink,
    }


def _last_ms(found: list[Lane]) -> int:
    """Return the last time in the lanes, at least 1."""
    return max(
        [
            1,
            *(m.at_ms for lane in found for m in lane.moments),
            *(span.until_ms for lane in found for span in lane.spans),
        ]
    )


def _column(at_ms: int, end_ms: int) -> int:
    return min(COLUMNS - 1, at_ms * COLUMNS // end_ms)


def _step_ms(end_ms: int) -> int:
    """Return the step between the labels: ten at most, at round figures."""
    steps = [figure * power for power in (100, 1_000, 10_000, 100_000) for figure in (1, 2, 5)]
    return next((step for step in steps if 10 * step >= end_ms), end_ms)
