"""Checks of joins: the result is the join of both tables.

They also ask whether the races could happen at all, and whether a record that cannot be joined is
refused.
"""

from collections import Counter

from upheld.checks.delivery import fold, relation
from upheld.checks.needs import Need
from upheld.checks.places import stop_names_record
from upheld.checks.registry import NO_STATE, OUTPUTS, RELATION, check
from upheld.checks.view import text, view_of
from upheld.history import History
from upheld.history.events import Instance, Mark, Measured, Record
from upheld.history.marks import Happening
from upheld.reading import loaded
from upheld.verdicts import Anomaly, Inconclusive

# Records of one partition: two that are no further apart are read, joined and sent on together, or
# race.
SOON = 50


def races(history: History, application: str) -> Counter[Happening]:
    """Count how often the input lets a race happen.

    A deletion may outrun its insertion, or an older result a newer one.
    """
    view = view_of(history, application)
    count = Counter[Happening]()
    left, right = (view.application.topics[role] for role in view.program.inputs)
    visible = [record for record in view.inputs if record.visible]
    rows = [record for record in visible if record.topic == left]
    lies = {record.key: record.partition for record in visible if record.topic == right}
    before: dict[bytes | None, tuple[Record, bytes | None]] = {}
    for record in rows:
        ticker = loaded(record.value or b"{}").get("ticker")
        partner = ticker.encode() if ticker else None
        last, was = before.get(record.key, (None, None))
        if last and last.value is not None:
            soon = record.offset - last.offset <= SOON
            count[Happening.ROWS_GONE_SOON] += soon and record.value is None
            moved = record.value is not None and lies.get(was, -1) != lies.get(partner, -1)
            count[Happening.ROWS_MOVED] += soon and moved
        before[record.key] = record, partner
    return count


@check(
    "result",
    anomalies=("lost", *NO_STATE),
    needs=OUTPUTS,
)
def result(history: History, application: str, *, table: list[list[str]]) -> list[Anomaly]:
    """Check that the last visible rows are those of a table.

    Args:
        history: The history.
        application: The application's name.
        table: The names of the columns, then the rows. The first column is the key, and a cell
            without text is null.
    """
    view = view_of(history, application)
    found = list[Anomaly]()
    names, *rows = table
    last = {
        key: o.record for key, outputs in view.outputs.items() for o in outputs if not o.anomaly
    }
    shown = {
        text(key): row for key, record in last.items() if (row := _row(record, names)) is not None
    }
    due = {row[0]: row for row in rows}
    for key in sorted(shown.keys() | due.keys()):
        if shown.get(key) != due.get(key):
            name = "lost" if key not in shown else "phantom"
            expected, got = (
                " | ".join(row) if row else "no row" for row in (due.get(key), shown.get(key))
            )
            found.append(
                Anomaly(
                    name=name,
                    text=f"{key} is {got} and not {expected}",
                    key=key,
                    expected=expected,
                    got=got,
                )
            )
    return view.foreign + found


def _row(record: Record, names: list[str]) -> list[str] | None:
    """Return the named cells of a result; None for a tombstone.

    A cell of its left row goes before one of its right row.
    """
    value = loaded(record.value or b"null")
    if value is None:
        return None
    cells = (value["right"] or {}) | value["left"]
    return [_cell(cells.get(name)) for name in names]


def _cell(value: object) -> str:
    """Return a cell as a table of the feature has it."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


@check(
    "refused-or-right",
    anomalies=RELATION,
    needs=OUTPUTS,
    by_last_value=True,
)
def refused_or_right(history: History, application: str) -> list[Anomaly]:
    """Check that a design that refused to start left everything as it was.

    A design that did not refuse, or was ready at its next start, has to be right.
    """
    view = view_of(history, application)
    refused = ""
    later = set[int]()
    for event in history.events:
        later.add(id(event))
        if isinstance(event, Instance) and event.application == application:
            if event.event == "failed":
                refused = refused or f"it refused ({event.detail}), and"
            elif event.event == "ready":
                refused = ""
            elif event.event == "started" and not refused:
                later.clear()  # what came before is another start's
    if not refused:
        return relation(history, application)
    outputs = [
        o.record
        for outputs in view.outputs.values()
        for o in outputs
        if o.anomaly or id(o.record) in later
    ]
    return [
        Anomaly(name="phantom", text=f"{refused} {r.at} is visible", key=text(r.key or b""))
        for r in outputs
    ]


@check(
    "whole-or-refused",
    anomalies=(*RELATION, "ahead-of-commit", "behind-commit"),
    needs=OUTPUTS,
    by_last_value=True,
)
def whole_or_refused(history: History, application: str) -> list[Anomaly]:
    """Check that a design that refused to go on left what it had committed.

    Such a design has stopped loudly before. A design that goes on has to be right to the end.
    """
    has_refused = any(mark.happening is Happening.START_REFUSED for mark in history.of(Mark))
    judge = fold if has_refused else relation
    return judge(history, application)


@check(
    "forgotten",
    anomalies=("unbounded",),
    needs={Need.INPUT, Need.START, Need.SIZES},
)
def forgotten(history: History, application: str, *, times: int) -> list[Anomaly]:
    """Check that the state is at last at most so many times its first size.

    Inconclusive if it never was larger.
    """
    first, *_, last = sizes = [m for m in history.of(Measured) if m.application == application]
    if last.size <= times * first.size:
        if max(m.size for m in sizes) <= times * first.size:
            raise Inconclusive(
                f"it held {first.size} {first.unit} at first, and hardly more with many more rows "
                "in its tables"
            )
        return []
    said = (
        f"it holds {last.size} {last.unit}, and held {first.size} when about as many rows were "
        "there"
    )
    return [
        Anomaly(
            name="unbounded",
            text=said,
            expected=f"{times * first.size} at most",
            got=str(last.size),
        )
    ]


@check(
    "named",
    anomalies=("stuck", *NO_STATE),
    needs={Need.INPUT, Need.START, Need.FAILURE},
)
def named(history: History, application: str) -> list[Anomaly]:
    """Check that the loud stop names the record that cannot be read.

    Nothing that comes of it is visible.
    """
    view = view_of(history, application)
    stop = next(
        e for e in history.of(Instance) if e.application == application and e.event == "failed"
    )
    unreadable = [record for record in view.unreadable if record.visible]
    found = list(view.foreign)
    if not any(stop_names_record(stop, record.at) for record in unreadable):
        found.append(
            Anomaly(
                name="stuck",
                text=f"it stopped and named no record that cannot be read: {stop.detail}",
            )
        )
    return found
