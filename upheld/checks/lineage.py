"""Checks of lineage: id, chain, timestamp and headers survive every hop."""

from collections.abc import Iterator

from upheld.checks.registry import NO_STATE, OUTPUTS, check
from upheld.checks.view import View, text, view_of
from upheld.history import History
from upheld.history.events import Record
from upheld.programs import State, Unreadable
from upheld.programs.relay import canonical_chain
from upheld.verdicts import Anomaly


@check(
    "preserved",
    anomalies=NO_STATE,
    needs=OUTPUTS,
)
def preserved(history: History, application: str) -> list[Anomaly]:
    """Check that every visible output carries the lineage of the input that made it.

    That is the envelope id, the chain and the timestamp. A relay keeps the input's other headers as
    well, in their order. A key whose outputs never came carries nothing.
    """
    view = view_of(history, application)
    found = list(view.foreign)
    for key, states in view.states.items():
        if key not in view.outputs:
            said = f"{text(key)} has no visible output"
            found.append(view.anomaly("lost", said, key, states[-1]))
    for key, outputs in view.outputs.items():
        for output in outputs:
            if not output.anomaly:
                found += _changed(view, key, output.record, view.states[key][output.index])
    return found


def _changed(view: View, key: bytes, record: Record, state: State) -> Iterator[Anomaly]:
    """Compare the lineage of an output with that of its state."""
    try:
        lineage = view.program.lineage_of(record)
    except Unreadable as error:
        yield view.anomaly("phantom", error.why, key, state, record)
        return
    wrong = []
    if lineage.envelope_id != state.envelope_id:
        wrong.append(f"id {lineage.envelope_id!r} instead of {state.envelope_id!r}")
    if canonical_chain(lineage.chain) != canonical_chain(state.chain):
        wrong.append(f"chain {lineage.chain} instead of {state.chain}")
    if record.timestamp_ms != state.source.timestamp_ms:
        wrong.append(f"timestamp {record.timestamp_ms} instead of {state.source.timestamp_ms}")
    missing = [] if view.program.conflates else _missing_headers(record, state.source)
    if missing:
        wrong.append(f"no header {missing[0]!r}")
    if wrong:
        said = f"{record.at} for {text(key)} has {'; '.join(wrong)}"
        yield view.anomaly("lost" if missing else "phantom", said, key, state, record)


def _missing_headers(record: Record, source: Record) -> list[str]:
    """Return the names of the input's headers that an output lacks, in order."""
    kept = iter(record.headers)  # each header is looked for after the one before it
    return [header[0] for header in source.headers if header not in kept]
