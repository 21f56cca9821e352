"""Is a design as far behind as it says?"""

from streamgate.checks.view import view_of
from streamgate.history import History
from streamgate.history.events import Lag
from streamgate.verdicts import Anomaly, Inconclusive, NotOffered

AGE_MS = 1_000  # how old an answer may be: who asks Kafka once a second is no liar


def lag(history: History, application: str) -> list[Anomaly]:
    """Whether no answer is less than the records that had waited for a second, nor more than all that was not committed then.

    It counts offsets, of all partitions together, from what the group has committed: what was read and not committed will be
    read again. Whether markers count is the design's affair. Inconclusive where it was never behind, or always.
    """
    view = view_of(history, application)
    given = [said for said in history.of(Lag) if said.application == application]
    if not given:
        raise NotOffered("the design does not say how far it is behind (capability lag)")
    found, bounds = [], []
    for said in given:
        then_ms = said.at_ms - AGE_MS
        before = next((e.committed for e in reversed(given) if e.at_ms <= then_ms), {})
        least = sum(
            record.seen_ms <= then_ms and record.offset >= said.committed[f"{record.topic}-{record.partition}"]
            for record in view.inputs
            if record.visible
        )
        most = sum(end - before.get(place, 0) for place, end in said.high_watermark.items())
        bounds.append((least, most))
        if not least <= said.offsets <= most:
            text = f"{said.name} says that it is {said.offsets} offsets behind at {said.at_ms} ms, and by Kafka it is"
            found.append(Anomaly(name="misstated", text=f"{text} {least} to {most}"))
    if not found and min(most for _, most in bounds) >= max(least for least, _ in bounds):
        raise Inconclusive("it was never far behind, or always, so whatever it says is true")
    return [*view.foreign, *found]
