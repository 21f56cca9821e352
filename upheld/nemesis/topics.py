"""Acts on the log of an input: new partitions, a new topic, deleted records."""

from upheld.history import events
from upheld.history.marks import Happening
from upheld.trial.application import Application
from upheld.trial.trial import Trial
from upheld.verdicts import MarkMissed, Violated


def grow(trial: Trial, application: Application) -> None:
    """Give the input twice as many partitions; the next wave goes there as well.

    A branch of the ledger stays where it is, or goes from partition p of n to p + n. That partition
    comes after it in the log, so the states of its accounts stay in order.
    """
    application.is_struck = True
    topic = application.reads
    partitions = application.inputs[topic] = 2 * application.inputs[topic]
    trial.reading.grow(topic, partitions)
    trial.rig.feed.look_at(topic)
    for committed in (True, False):
        position = application.sight.positions.setdefault((topic, committed), {})
        position |= {partition: position.get(partition, 0) for partition in range(partitions)}
    trial.mark(Happening.PARTITIONS_ADDED, partitions=partitions)


def make_anew(trial: Trial, application: Application) -> None:
    """Delete the input topic, and make a new one of that name and size.

    The harness forgets what it has read and written there.
    """
    topic = application.reads
    partitions = application.inputs[topic]
    trial.reading.delete([topic])
    trial.reading.create({topic: partitions})
    trial.rig.feed.look_at(topic)
    application.input.incarnations[topic] += 1
    for position in (True, False):
        application.sight.positions.pop((topic, position), None)
    for place in (f"{topic}-{partition}" for partition in range(partitions)):
        application.input.ends.pop(place, None)
        application.input.appended.pop(place, None)
    trial.mark(Happening.INPUT_REMADE, committed=trial.probes.offsets(application))


def cut(trial: Trial, application: Application) -> None:
    """Delete the first half of what is not committed, and mark from where to where.

    It is half of each partition, deleted by the broker.

    Raises:
        NotOffered: No offsets in Kafka say how far the design has read.
        MarkMissed: None of the deleted records is visible to a reader.
    """
    trial.probes.demand_offsets(application, "how far it is")
    seen = [r for r in trial.history.of(events.Record) if r.visible]
    gaps = {}
    for place, begin in (trial.probes.offsets(application) or {}).items():
        unread = sorted(
            r.offset for r in seen if f"{r.topic}-{r.partition}" == place and r.offset >= begin
        )
        if unread:
            gaps[place] = (begin, unread[len(unread) // 2] + 1)
    if not gaps:
        raise MarkMissed("nothing was left that had not been read")
    trial.reading.truncate({place: end for place, (_, end) in gaps.items()})
    trial.mark(Happening.INPUT_TRUNCATED, gaps=gaps)


def expect_gap(trial: Trial, application: Application) -> None:
    """Wait until instance a says that some of its input is gone, or goes on.

    It may have refused to start. If it said that it goes on elsewhere, it is stopped when all is
    read.

    Raises:
        Violated: It neither says so nor goes on.
    """
    instance = application.running["a"]
    if any(e.event == "failed" for e in trial.history.of(events.Instance)):
        trial.instances.let_go(application, "a")
    elif not trial.recorder.wait(
        trial.rig.progress_s,
        lambda: instance.failed is not None or trial.monitor.is_drained(application),
    ):
        raise Violated.one(
            "stuck",
            f"{trial.manifest.name} neither went on nor said why not, on a gap in its input",
        )
    elif instance.failed:
        trial.instances.gave_up(application, "a")
    else:
        trial.instances.stop(application)
    trial.waits.settle(application)
