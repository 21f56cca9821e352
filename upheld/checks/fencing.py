"""Checks of fencing: a fenced or failed instance stays silent.

It lets readers pass. Each partition has one owner at a time.
"""

from collections import defaultdict
from itertools import groupby

from upheld.checks.needs import Need
from upheld.checks.registry import NO_STATE, OUTPUTS, check
from upheld.checks.view import demand_sources, recoveries, text, view_of
from upheld.history import History
from upheld.history.events import Batch, Committed, Ends, Instance, Mark, Notice, Record
from upheld.history.evidence import OpenTransaction, Writer
from upheld.history.marks import Happening, Look
from upheld.verdicts import Anomaly, Inconclusive, NotOffered, Undeclared


@check(
    "silent",
    anomalies=("fenced-but-emitting",),
    needs=OUTPUTS | {Need.BATCHES, Need.PAUSED, Need.ENDS_OF_A_PAUSE},
    by_last_value=True,
)
def silent(history: History, application: str) -> list[Anomaly]:
    """Check that nothing of a zombie becomes visible after its successor took over.

    A zombie may append: nothing in Kafka keeps it from that until its transaction ends. If its
    transaction was aborted, no reader of committed data is given the record.

    The mark of the pause names the writers (producer id and epoch) and the last stable offsets at
    that moment. Batches that such a producer wrote from there on belong to the transaction that its
    successor had to settle. Batches at or above the recorded ends came after the input was drained,
    so no other instance had a reason to write them.
    """
    view = view_of(history, application)
    topic = view.application.topics[view.program.writes]
    pause = [m for m in history.of(Mark) if m.happening is Happening.TRANSACTION_OPEN][-1]
    ends = [
        e for e in history.of(Ends) if e.application == application and e.look is Look.BEFORE_ZOMBIE
    ][-1]
    paused = OpenTransaction.of(pause)
    visible = {
        (r.partition, r.offset): r for r in history.of(Record) if r.topic == topic and r.visible
    }
    aborted = _aborted(history, topic)
    found = []
    for batch in (b for b in history.of(Batch) if b.topic == topic and b.control is None):
        where = f"{topic}-{batch.partition}"
        writer = Writer(batch.producer_id, batch.producer_epoch)
        by_zombie = writer in paused.writers and batch.base_offset >= paused.last_stable[where]
        is_late = batch.base_offset >= ends.high_watermark[where]
        shown = [
            visible[batch.partition, o]
            for o in range(batch.base_offset, batch.last_offset + 1)
            if (batch.partition, o) in visible
        ]
        is_aborted = (batch.partition, batch.base_offset) in aborted and not shown
        if (by_zombie and shown) or (is_late and not is_aborted):
            when = "the fenced one, and is visible"
            if is_late:
                when = "after its successor had drained the input"
            said = (
                f"{where}@{batch.base_offset}..{batch.last_offset} was written by producer "
                f"{batch.producer_id}, epoch {batch.producer_epoch}, {when}"
            )
            first = shown[0] if shown else None
            key = text(first.key or b"") if first else None
            got = first.at if first else None
            found.append(Anomaly(name="fenced-but-emitting", text=said, key=key, got=got))
    return found


def _aborted(history: History, topic: str) -> set[tuple[int, int]]:
    """Return the batches of a topic whose transaction was aborted: partition and base offset.

    The marker that ends a transaction is the next one of its producer in the partition.
    """
    open_batches = defaultdict[tuple[int, int], list[Batch]](list)
    aborted = set[tuple[int, int]]()
    own = {(b.partition, b.base_offset): b for b in history.of(Batch) if b.topic == topic}
    for _, batch in sorted(own.items()):
        writer = (batch.partition, batch.producer_id)
        if batch.control is None:
            if batch.transactional:
                open_batches[writer].append(batch)
            continue
        ended = open_batches.pop(writer, [])
        if batch.control == "abort":
            aborted |= {(each.partition, each.base_offset) for each in ended}
    return aborted


@check(
    "noticed",
    anomalies=("fenced-but-emitting", *NO_STATE),
    needs={Need.START, Need.MARK},
)
def noticed(history: History, application: str) -> list[Anomaly]:
    """Check that two deployments under the same ids share the input or notice (G55).

    It is enough that one of them notices: it stops loudly, or is refused at its start. An instance
    that gives up has noticed, too, though its supervisor starts it again. The second deployment
    may be one more instance: then no partition has two owners. Where outputs do not show which
    input they are of, the group alone says so: its members were seen to hold each partition once.
    """
    since = 0
    for number, event in enumerate(history.events):
        if isinstance(event, Instance) and event.application == application:
            since = number if event.event == "started" else since
    later = history.events[since:]
    lives = [e for e in later if isinstance(e, Instance) and e.application == application]
    if any(event.event == "failed" for event in lives):
        return []
    if any(isinstance(e, Notice) and e.code == "recovered" for e in later):
        return []
    if any(isinstance(e, Mark) and e.happening is Happening.INPUT_SHARED for e in later):
        try:
            return owners(history, application)
        except NotOffered:
            return []
    said = (
        f"{lives[0].name} was started under the ids of another one; neither has noticed, and they "
        "do not share the input"
    )
    return [Anomaly(name="fenced-but-emitting", text=said)]


@check(
    "handed-over",
    anomalies=("fenced-but-emitting", *NO_STATE),
    needs=OUTPUTS | {Need.BATCHES, Need.ENDS_OF_A_SWITCH},
    by_last_value=True,
)
def handed_over(history: History, application: str) -> list[Anomaly]:
    """Check that of two clusters only the active one writes (G31, G62).

    The one that stands by writes nothing, and the one that has handed over writes nothing more.
    Records of aborted transactions count for neither: no reader of committed data is given them.
    Producers that wrote before the second cluster was started are the first one's. The ends were
    recorded between the two.
    """
    view = view_of(history, application)
    first = set[int]()
    standing = False
    ends = [
        e for e in history.of(Ends) if e.application == application and e.look is Look.HANDED_OVER
    ][-1].high_watermark
    found = list(view.foreign)
    late = set[int]()
    aborted = _aborted(history, view.table)
    for event in history.events:
        if isinstance(event, Instance) and (event.application, event.event) == (
            application,
            "standing-by",
        ):
            standing = True
        elif isinstance(event, Batch) and event.topic == view.table and event.control is None:
            where = f"{event.topic}-{event.partition}"
            if (event.partition, event.base_offset) in aborted:
                continue
            if not standing:
                first.add(event.producer_id)
            elif (event.producer_id in first) == (event.base_offset >= ends[where]):
                who = "that has handed over" if event.producer_id in first else "that stands by"
                said = (
                    f"{where}@{event.base_offset}..{event.last_offset} was written by the cluster "
                    f"{who}"
                )
                found.append(
                    Anomaly(
                        name="fenced-but-emitting", text=f"{said} (producer {event.producer_id})"
                    )
                )
            elif event.producer_id not in first:
                late.add(event.producer_id)
    if not found and not (first and late):
        raise Inconclusive(
            "one of the two clusters has written nothing, so it could not write at the wrong time"
        )
    return found


@check(
    "released",
    anomalies=("stuck",),
    needs={Need.START, Need.MARK, Need.COMMIT},
)
def released(history: History, application: str, *, bound_ms: int) -> list[Anomaly]:
    """Check that readers of the outputs passed a dead instance's transaction in time."""
    committed = [c for c in history.of(Committed) if c.application == application][-1]
    if committed.stable_ms <= bound_ms:
        return []
    said = (
        f"a read_committed reader waited {committed.stable_ms} ms for the open transaction; the "
        f"bound is {bound_ms} ms"
    )
    return [Anomaly(name="stuck", text=said)]


@check(
    "owners",
    anomalies=("fenced-but-emitting", *NO_STATE),
    needs=OUTPUTS | {Need.BATCHES},
)
def owners(history: History, application: str) -> list[Anomaly]:
    """Check that each input partition had one owner at a time (G28, G52).

    The owners are the producers of the outputs that its records made. A partition may pass to
    another owner whenever an instance comes or goes. Producers that share an id have it one after
    the other, by Kafka's own fencing. Inconclusive if one producer wrote everything in one epoch.
    It is not offered for an output that does not show which input it is of.
    """
    view = view_of(history, application)
    demand_sources(view)
    topic = view.application.topics[view.program.writes]
    batches = [
        batch for batch in history.of(Batch) if batch.topic == topic and batch.control is None
    ]
    writers = {
        (batch.partition, offset): batch.producer_id
        for batch in batches
        for offset in range(batch.base_offset, batch.last_offset + 1)
    }
    if -1 in writers.values():
        raise Undeclared("its producers have no ids, so nobody can see who wrote what")
    if len({(batch.producer_id, batch.producer_epoch) for batch in batches}) == 1:
        raise Inconclusive("one producer wrote all of the outputs, so that nothing was shared")
    changes = sum(
        e.application == application
        and e.event in {"started", "stopped", "killed", "failed", "exited"}
        for e in history.of(Instance)
    )
    changes += sum(1 for _ in recoveries(history, application))
    # By input partition and output partition.
    came = defaultdict[tuple[str, int], list[Record]](list)
    for key, outputs in view.outputs.items():
        for output in (o for o in outputs if not o.anomaly):
            source = view.states[key][output.index].source
            came[f"{source.topic}-{source.partition}", output.record.partition].append(
                output.record
            )
    found = dict[str, tuple[int, Anomaly]]()  # of an input partition, where it passed most often
    for (source_partition, _), records in sorted(came.items()):
        records.sort(key=lambda record: record.offset)
        turns = [
            next(run) for _, run in groupby(records, key=lambda r: writers[r.partition, r.offset])
        ]
        passed = len(turns) - 1
        most = found[source_partition][0] if source_partition in found else changes
        if passed > most:
            pair = " and ".join(
                str(writers[record.partition, record.offset]) for record in turns[-2:]
            )
            said = (
                f"{source_partition} passed {passed} times between producers, at last between "
                f"{pair}"
            )
            said += f", while instances came and went {changes} times"
            last = Anomaly(
                name="fenced-but-emitting",
                text=said,
                key=text(turns[-1].key or b""),
                got=turns[-1].at,
            )
            found[source_partition] = passed, last
    return [
        anomaly for _, anomaly in found.values()
    ] or view.foreign  # the outputs of two owners may be no state at all
