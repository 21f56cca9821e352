"""What happened when, as text and as a picture: lanes for faults, input, instances, their requests,
commits and output.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, tostring

from upheld.checks.view import view_of
from upheld.history import History
from upheld.history.events import Application, Committed, Connection, Instance, Mark, Record
from upheld.verdicts import Anomaly

COLUMNS, NAMES = 72, 9  # characters
SIGNS = {  # of an instance's events; of all others the first letter
    "started": "s",
    "ready": "R",
    "stopped": "|",
    "killed": "X",
    "failed": "F",
    "exited": "x",
    "active": "A",
}
ENDS = {"stopped", "killed", "failed", "exited"}
PICTURE, LEFT, ROW = 960, 110, 26  # pixels
INK, LOUD, PALE = "#44617b", "#c0392b", "#d5dee6"


@dataclass(frozen=True)
class Moment:
    """Something that happened: a sign where it is more than one of many, and words for who points
    at it.
    """

    at_ms: int
    words: str
    sign: str = ""


@dataclass(frozen=True)
class Lane:
    """What happened to one thing, in order; and when it was there, where that is not always."""

    name: str
    moments: list[Moment]
    spans: tuple[tuple[int, int], ...] = ()


def lanes(history: History, anomalies: list[Anomaly]) -> list[Lane]:
    """The lanes in which something happened."""
    named = {a.source for a in anomalies} | {(a.got or "").rpartition(" at ")[2] for a in anomalies}
    applications, end_ms = list(history.of(Application)), _end_ms(history)
    found = [Lane("faults", [Moment(m.at_ms, m.fault, "!") for m in history.of(Mark)])]
    for application in applications:
        prefix, view = (
            f"{application.name} " if len(applications) > 1 else "",
            view_of(history, application.name),
        )
        read = {application.topics[role] for role in view.program.inputs}
        set_aside = {letter.topic for letter in view.dead_letters}
        for name, topics in (("input", read), ("letters", set_aside), ("output", {view.table})):
            records = {r.at: r for r in history.of(Record) if r.topic in topics and r.visible}
            moments = [
                Moment(r.seen_ms, at, "!" if at in named else "") for at, r in records.items()
            ]
            found.append(Lane(prefix + name, sorted(moments, key=lambda m: m.at_ms)))
        own = [e for e in history.of(Instance) if e.application == application.name]
        for instance in dict.fromkeys(e.name for e in own):
            found.insert(
                -1, _life(prefix + instance, [e for e in own if e.name == instance], end_ms)
            )
        asked = [
            change
            for e in history.of(Connection)
            if e.application == application.name
            for change in e.changed
        ]
        said = [
            Moment(at_ms, f"{fault} {api}".strip(), "!" if fault else "")
            for at_ms, api, fault in sorted(asked)
        ]
        found.insert(-1, Lane(f"{prefix}wire", said))
        commits = [
            e
            for e in history.of(Committed)
            if e.application == application.name and e.offsets is not None
        ]
        found.insert(
            -1,
            Lane(
                f"{prefix}commits",
                [Moment(e.at_ms, "what was committed was looked at") for e in commits],
            ),
        )
    return [lane for lane in found if lane.moments]


def _life(name: str, own: list[Instance], end_ms: int) -> Lane:
    spans, since_ms = list[tuple[int, int]](), -1
    for event in own:
        if event.event in ENDS and since_ms >= 0:
            spans.append((since_ms, event.at_ms))
            since_ms = -1
        elif event.event not in ENDS and since_ms < 0:
            since_ms = event.at_ms
    if since_ms >= 0:
        spans.append((since_ms, end_ms))
    words = [(e, f"{e.event} {e.detail}".strip()) for e in own]
    return Lane(
        name,
        [Moment(e.at_ms, said, SIGNS.get(e.event, e.event[0])) for e, said in words],
        tuple(spans),
    )


def _end_ms(history: History) -> int:
    happened: list[Instance | Mark | Committed] = [
        *history.of(Instance),
        *history.of(Mark),
        *history.of(Committed),
    ]
    return max([1, *(e.at_ms for e in happened), *(r.seen_ms for r in history.of(Record))])


def drawn(found: list[Lane]) -> Iterator[str]:
    """The lanes in characters: `.` to `#` for how much, `-` for who is there, and signs, which hide
    all else in their place.
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
                cells[column] = ".:+#"[min(3, 4 * count // max(counts))]
        for moment in lane.moments:
            if moment.sign:
                cells[_column(moment.at_ms, end_ms)] = moment.sign
        yield f"{lane.name[:NAMES]:<{NAMES}} {''.join(cells)}".rstrip()
    yield f"{'':<{NAMES}} 0{f'{end_ms / 1000:.1f} s':>{COLUMNS - 1}}"


def picture(found: list[Lane], title: str) -> str:
    """The lanes as SVG, which a browser shows: whoever points at a thing is told what it was and
    when.
    """
    end_ms, height = _last_ms(found), ROW * (len(found) + 2)
    root = Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {PICTURE} {height}",
        style="font: 12px sans-serif; background: white",
    )
    SubElement(root, "text", x="8", y="18", style="font-weight: bold").text = title

    def x(at_ms: int) -> float:
        return LEFT + at_ms / end_ms * (PICTURE - LEFT - 12)

    for number, lane in enumerate(found, 1):
        top = ROW * number
        SubElement(root, "text", x="8", y=str(top + 17)).text = lane.name
        for begin_ms, until_ms in lane.spans:
            width = max(1.0, x(until_ms) - x(begin_ms))
            SubElement(root, "rect", _box(x(begin_ms), top + 9, width, 8, PALE))
        crowd = Counter(round(x(m.at_ms)) for m in lane.moments if not m.sign)
        for left, count in crowd.items():
            tall = 18 * (1 + math.log(count)) / (1 + math.log(max(crowd.values())))
            mark = SubElement(root, "rect", _box(left, top + 22 - tall, 1, tall, INK))
            SubElement(mark, "title").text = str(count)
        for moment in (m for m in lane.moments if m.sign):
            ink = LOUD if moment.sign in {"!", "X", "F"} else INK
            mark = SubElement(root, "rect", _box(x(moment.at_ms), top + 4, 3, 18, ink))
            SubElement(mark, "title").text = f"{moment.words}, {moment.at_ms} ms"
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
    return max(
        [
            1,
            *(m.at_ms for lane in found for m in lane.moments),
            *(u for lane in found for _, u in lane.spans),
        ]
    )


def _column(at_ms: int, end_ms: int) -> int:
    return min(COLUMNS - 1, at_ms * COLUMNS // end_ms)


def _step_ms(end_ms: int) -> int:
    """Ten labels at most, at round figures."""
    steps = [figure * power for power in (100, 1_000, 10_000, 100_000) for figure in (1, 2, 5)]
    return next((step for step in steps if 10 * step >= end_ms), end_ms)
