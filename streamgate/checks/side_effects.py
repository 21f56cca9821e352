"""What else did the design change? And does its one setting change anything else?"""

from streamgate.checks.view import View, show, text
from streamgate.history import History
from streamgate.history.events import Application, Instance, Names
from streamgate.verdicts import Anomaly


def side_effects(history: History, application: str) -> list[Anomaly]:
    """Whether nothing new stands on the broker but names that begin with an application id and were declared."""
    before, after = list(history.of(Names))[0], list(history.of(Names))[-1]
    ids = tuple(a.application_id for a in history.of(Application))
    declared = {t for i in history.of(Instance) for t in i.internal_topics}
    groups = {i.consumer_group for i in history.of(Instance)}
    ours = history.begun.names_are_ours
    found = []
    for topic in sorted(set(after.topics) - set(before.topics)):
        if topic in declared and topic.startswith(ids):
            continue
        if ours or topic.startswith(ids):
            why = "is not declared in internal_topics" if topic.startswith(ids) else "does not begin with the application id"
            found.append(Anomaly(name="leaked-topic", text=f"topic {topic} appeared and {why}"))
    for group in sorted(set(after.groups) - set(before.groups) - {g for g in groups if g}):
        if not group.startswith(ids) and ours:
            found.append(Anomaly(name="leaked-topic", text=f"consumer group {group} appeared and does not begin with the application id"))
    return found


def same_rows(history: History, application: str) -> list[Anomaly]:
    """Whether every application of the scenario, fed the same records, leaves the same last row for every key (G63).

    Positions name the application's own input topic and are left out; everything else must agree.
    """
    last = {each.name: _last_rows(View(history, each.name)) for each in history.of(Application)}
    (first, rows), *others = last.items()
    found = []
    for name, other in others:
        for key in sorted(rows.keys() | other.keys()):
            if rows.get(key) != other.get(key):
                said = f"{text(key)} ends as {show((rows.get(key),))} in {first} and as {show((other.get(key),))} in {name}"
                found.append(Anomaly(name="phantom" if key in other else "lost", text=said, key=text(key)))
    return found


def _last_rows(view: View) -> dict[bytes, object]:
    roles = {topic: role for role, topic in view.application.topics.items()}

    def anonymous(value: object) -> object:
        if not isinstance(value, tuple):
            return value
        if value and value[0] in roles:  # a position in the application's own input
            return roles[value[0]]
        return tuple(anonymous(part) for part in value)

    return {key: anonymous(view.program.value_of(outputs[-1].record)) for key, outputs in view.outputs.items()}
