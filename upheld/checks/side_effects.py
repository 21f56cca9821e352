"""Checks of side effects: the other changes that a design or its setting makes."""

from upheld.checks.needs import Need
from upheld.checks.registry import OUTPUTS, check
from upheld.checks.view import View, show, text, view_of
from upheld.history import History
from upheld.history.events import Answered, Application, Instance, Kept, Names, Record
from upheld.programs import Unreadable
from upheld.protocol.limits import Limit
from upheld.protocol.names import has_id_of, is_drawn
from upheld.verdicts import Anomaly


@check(
    "side-effects",
    anomalies=("leaked-topic",),
    needs={Need.START, Need.NAMES_TWICE},
)
def side_effects(history: History, _: str) -> list[Anomaly]:
    """Check that nothing new stands on the broker but names of the application.

    They have an application id in them, wherever it stands, and topics were declared too. The
    topics of the scenario's own applications are the harness's. A transactional id may also be
    drawn at random, since nobody else draws the same. On a broker that others use too, names
    without an application id that were not declared are theirs. Topics of a design that cannot name
    its own are not judged.
    """
    before = next(history.of(Names))
    after = list(history.of(Names))[-1]
    ids = tuple(a.application_id for a in history.of(Application))
    made = _made(history)
    declared = {t for i in history.of(Instance) for t in i.internal_topics}
    groups = {i.consumer_group for i in history.of(Instance)}
    ours = history.begun.names_are_ours
    found = []
    new_topics = set(after.topics) - set(before.topics) - made
    if Limit.TOPIC_NAMES in history.begun.cannot:
        new_topics = set()
    for topic in sorted(new_topics):
        is_own = has_id_of(topic, ids)
        if not is_own and (ours or topic in declared):
            said = f"topic {topic} appeared and does not contain the application id"
        elif is_own and topic not in declared:
            said = f"topic {topic} appeared and is not declared in internal_topics"
        else:
            continue
        found.append(Anomaly(name="leaked-topic", text=said))
    new = [
        ("consumer group", group)
        for group in sorted(set(after.groups) - set(before.groups) - groups)
    ]
    new += [
        ("transactional id", i)
        for i in sorted(set(after.transactional_ids) - set(before.transactional_ids))
        if not is_drawn(i)
    ]
    for kind, name in new:
        if not has_id_of(name, ids) and ours:
            said = f"{kind} {name} appeared and does not contain the application id"
            found.append(Anomaly(name="leaked-topic", text=said))
    return found


@check(
    "no-topics",
    anomalies=("leaked-topic",),
    needs={Need.START, Need.NAMES},
)
def no_topics(history: History, application: str) -> list[Anomaly]:
    """Check that the application has no topic of its own, declared or not."""
    own = history.application(application)
    made = _made(history)
    topics = (
        t
        for t in list(history.of(Names))[-1].topics
        if has_id_of(t, [own.application_id]) and t not in made
    )
    return [
        Anomaly(name="leaked-topic", text=f"{topic} is kept on the broker by the design itself")
        for topic in topics
    ]


@check(
    "footprint",
    anomalies=("leaked-topic",),
    needs={Need.INPUT, Need.START},
    by_last_value=True,
)
def footprint(history: History, application: str, *, topics: int, partitions: int) -> list[Anomaly]:
    """Check that a design keeps few and small topics beside its table.

    There are at most so many, none is wider than so many partitions, and none is a copy of the
    table's rows. In all they have no more bytes for each byte of the table's rows than the design
    declares.
    """
    view = view_of(history, application)
    kept = {each.topic: each for each in history.of(Kept) if each.application == application}
    beside = [topic for topic, each in kept.items() if topic not in {view.table, *_made(history)}]
    said = [
        f"{each.topic} has {each.partitions} partitions, {partitions} at most"
        for each in kept.values()
        if each.partitions > partitions
    ]
    said += [
        f"{each.topic} repeats {each.repeated} rows of {view.table}"
        for each in kept.values()
        if each.repeated
    ]
    if len(beside) > topics:
        said.append(f"beside its table it keeps {', '.join(sorted(beside))}, {topics} at most")
    rows = (output.record for outputs in view.outputs.values() for output in outputs)
    most = history.begun.bytes_beside_table * sum(
        len(row.key or b"") + len(row.value or b"") for row in rows
    )
    if (size := sum(kept[topic].size_bytes for topic in beside)) > most:
        said.append(
            f"beside its table it keeps {size} bytes, and declares {most:.0f} for what "
            f"{view.table} holds"
        )
    return [Anomaly(name="leaked-topic", text=each) for each in said]


def _made(history: History) -> set[str]:
    """Return the topics that the harness made for the scenario's applications."""
    made = {t for a in history.of(Application) for t in a.topics.values()}
    return made | {t for answer in history.of(Answered) for t in answer.topics}


@check(
    "same-rows",
    anomalies=("phantom", "lost"),
    needs=OUTPUTS,
    by_last_value=True,
)
def same_rows(history: History, _: str) -> list[Anomaly]:
    """Check that every application, fed the same records, ends in the same rows (G63).

    Positions name the application's own input topic and are left out; everything else must agree. A
    key that the model has and no application shows is lost, so that two silent ones do not agree.
    """
    views = {each.name: view_of(history, each.name) for each in history.of(Application)}
    last = {name: _last_rows(view) for name, view in views.items()}
    (first, rows), *others = last.items()
    found = []
    for name, other in others:
        for key in sorted(views[first].states.keys() | rows.keys() | other.keys()):
            if key not in rows or key not in other:
                silent = " and ".join(
                    n for n, shown in ((first, rows), (name, other)) if key not in shown
                )
                found.append(
                    Anomaly(name="lost", text=f"{text(key)} has no row in {silent}", key=text(key))
                )
            elif rows[key] != other[key]:
                said = (
                    f"{text(key)} ends as {show((rows[key],))} in {first} and as "
                    f"{show((other[key],))} in {name}"
                )
                found.append(Anomaly(name="phantom", text=said, key=text(key)))
    return found


def _last_rows(view: View) -> dict[bytes, object]:
    roles = {topic: role for role, topic in view.application.topics.items()}

    def anonymous(value: object) -> object:
        if not isinstance(value, tuple):
            return value
        if value and value[0] in roles:  # a position in the application's own input
            return roles[value[0]]
        return tuple(anonymous(part) for part in value)

    def row(record: Record) -> object:
        try:
            return anonymous(view.program.value_of(record))
        except Unreadable as error:
            return error.why

    return {key: row(outputs[-1].record) for key, outputs in view.outputs.items()}
