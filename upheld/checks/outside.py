"""Outputs that no transaction holds, under exactly_once."""

from upheld.checks.view import View, text, view_of
from upheld.history import History
from upheld.history.events import Batch, Record
from upheld.history.outputs import by_output
from upheld.verdicts import Anomaly


def outside(history: History, application: str) -> list[Anomaly]:
    """Return the first output that was written outside of any transaction, if one was.

    Under exactly_once outputs and offsets are committed together. A record outside of a transaction
    is visible at once, whatever becomes of its input. Under at_least_once it is right.
    """
    views = [view_of(each, application) for each in by_output(history, application)]
    view = views[0]
    if not view.exactly_once:
        return []
    topics = [stage.table for each in views for stage in each.stages]
    batch = next((each for each in history.of(Batch) if _is_outside(each, topics)), None)
    return [_anomaly(view, batch)] if batch else []


def _is_outside(batch: Batch, topics: list[str]) -> bool:
    return batch.topic in topics and batch.control is None and not batch.transactional


def _anomaly(view: View, batch: Batch) -> Anomaly:
    first = next(
        (
            record
            for record in view.history.of(Record)
            if (record.topic, record.partition, record.offset)
            == (batch.topic, batch.partition, batch.base_offset)
        ),
        None,
    )
    where = f"{batch.topic}-{batch.partition}@{batch.base_offset}..{batch.last_offset}"
    return Anomaly(
        name="uncommitted-visible",
        text=(
            f"{where} was written outside of any transaction under exactly_once: readers have it "
            "whatever becomes of its input"
        ),
        key=text(first.key or b"") if first else None,
        got=first.at if first else None,
    )
