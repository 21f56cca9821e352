"""Do id, chain, timestamp and headers survive every hop?"""

from upheld.checks.registry import NO_STATE, check
from upheld.checks.view import text, view_of
from upheld.history import History
from upheld.programs import Unreadable
from upheld.programs.relay import canonical_chain
from upheld.verdicts import Anomaly


@check("preserved", anomalies=NO_STATE)
def preserved(history: History, application: str) -> list[Anomaly]:
    """Whether every visible output carries the envelope id, the chain and the timestamp of the
    input that made it.

    A relay keeps the input's other headers as well, in their order. A key whose outputs never came
    carries nothing.
    """
    view = view_of(history, application)
    found = list(view.foreign)
    for key in view.states.keys() - view.outputs.keys():
        found.append(
            view.anomaly("lost", f"{text(key)} has no visible output", key, view.states[key][-1])
        )
    for key, outputs in view.outputs.items():
        for output in outputs:
            if output.anomaly:
                continue
            record, state = output.record, view.states[key][output.index]
            try:
                envelope_id, chain = view.program.lineage_of(record)
            except Unreadable as error:
                found.append(view.anomaly("phantom", error.why, key, state, record))
                continue
            wrong = []
            if envelope_id != state.envelope_id:
                wrong.append(f"id {envelope_id!r} instead of {state.envelope_id!r}")
            if canonical_chain(chain) != canonical_chain(state.chain):
                wrong.append(f"chain {chain} instead of {state.chain}")
            if record.timestamp_ms != state.source.timestamp_ms:
                wrong.append(
                    f"timestamp {record.timestamp_ms} instead of {state.source.timestamp_ms}"
                )
            kept = iter(record.headers)  # each header is looked for behind the one before it
            missing = (
                [] if view.program.conflates else [h for h in state.source.headers if h not in kept]
            )
            if missing:
                wrong.append(f"no header {missing[0][0]!r}")
            if wrong:
                said = f"{record.at} for {text(key)} has {'; '.join(wrong)}"
                found.append(
                    view.anomaly("lost" if missing else "phantom", said, key, state, record)
                )
    return found
