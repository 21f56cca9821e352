"""What becomes of an input's log: more partitions, another topic of that name, records that are
gone before they were read.
"""

from upheld.history import events
from upheld.history.marks import Happening
from upheld.trial.application import Application
from upheld.trial.trial import Trial
from upheld.verdicts import MarkMissed, Violated


def grow(trial: Trial, application: Application) -> None:
    """Give the input twice as many partitions; what is fed next goes there as well.

    A branch of the ledger stays where it is or goes from partition p of n to p + n, which lies
    behind it in the log, so the states of its accounts stay in order.
    """
    topic = application.reads
    partitions = application.inputs[topic] = 2 * application.inputs[topic]
    trial.reading.grow(topic, partitions)
    trial.rig.feed.look_at(topic)
    for committed in (True, False):
        position = application.sight.positions.setdefault((topic, committed), {})
        position |= {partition: position.get(partition, 0) for partition in range(partitions)}
    trial.mark(Happening.PARTITIONS_ADDED, partitions=partitions)


def make_anew(trial: Trial, application: Application) -> None:
    """Delete the input topic, and make one of that name and size; nobody has read anything of
    that.
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
    trial.mark(Happening.INPUT_REMADE, committed=trial.probes.committed(application))


def cut(trial: Trial, application: Application) -> None:
    """Have the broker delete the first half of what is not committed, in each partition; mark from
    where to where.

    MarkMissed where that was no record that a reader is given.
    """
    trial.probes.demand_group(application, "how far it is")
    seen = [r for r in trial.history.of(events.Record) if r.visible]
    gaps = {}
    for place, begin in (trial.probes.committed(application) or {}).items():
        unread = sorted(
            r.offset for r in seen if f"{r.topic}-{r.partition}" == place and r.offset >= begin
        )
        if unread:
            gaps[place] = (begin, unread[len(unread) // 2] + 1)
    if not gaps:
        raise MarkMissed("nothing was left that had not been read")
    trial.reading.cut({place: end for place, (_, end) in gaps.items()})
    trial.mark(Happening.INPUT_TRUNCATED, gaps=gaps)


def expect_gap(trial: Trial, application: Application) -> None:
    """Wait until an instance that has lost some of its input says so, or has gone on without a
    word; it may have refused.
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
        return
    trial.waits.settle(application)
