"""Any legal history passes every check, and any mutated one is caught.

The anomaly is one that the mutation may be called. The histories are those of the small design in
tests/support, which shares nothing with the models.
"""

import json
from dataclasses import replace
from typing import Any

import pytest
from histories import Story
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from properties import claimed, found, some
from small_design import Design, Edit, Plan, Sin, plans, played

from upheld.checks import ANOMALIES
from upheld.generators.envelope_pb2 import Envelope
from upheld.history.events import Record


@settings(max_examples=150)
@given(plans())
def test_a_legal_history_is_never_wrong(plan: Plan) -> None:
    """No legal history raises an anomaly.

    Legal are restarts, conflation, repeats, aborted entries, gaps and moves, as the mode allows
    them.
    """
    wrong = {
        check: names for check, names in claimed(Design(plan).play().story.history).items() if names
    }

    assert wrong == {}


@given(plans(modes=["exactly_once"]))
def test_both_modes_leave_the_same_rows(plan: Plan) -> None:
    """The same input in the other mode and with other gaps ends in the same rows."""
    story = Design(plan).play().story
    other = story.beside("at_least_once")
    other.gap(5)
    other.gap(2, partition=1)
    Design(replace(plan, mode="at_least_once", lives=()), story=other).play()

    assert found("same-rows", story.history) == set()


@given(plans(), st.data())
def test_the_last_output_is_dropped(plan: Plan, data: st.DataObject) -> None:
    """A key whose last state is shown nowhere has lost it, and is late."""
    edit = played(plan)
    outputs = some(data, list(edit.by_key().values()))
    history = edit.history(
        *[(record, []) for record in outputs if record.value == outputs[-1].value]
    )

    assert "lost" in found("relation", history)
    assert found("promptly", history) == {"late"}
    assert {"behind-commit"} <= found("fold", history)


@given(plans("relay"), st.data())
def test_any_output_of_a_relay_is_dropped(plan: Plan, data: st.DataObject) -> None:
    """Every record of a relay counts, not only the last.

    Below a commit a missing record is found at once.
    """
    edit = played(plan)
    dropped = some(data, edit.outputs)
    history = edit.history(
        *[(record, []) for record in edit.outputs if record.value == dropped.value]
    )

    assert "lost" in found("relation", history)
    assert found("fold", history) & {"lost", "behind-commit"}


@given(plans(modes=["exactly_once"]), st.data())
def test_an_output_is_duplicated(plan: Plan, data: st.DataObject) -> None:
    """Under exactly_once no state comes twice, wherever the second one stands."""
    edit = played(plan)
    outputs = some(data, list(edit.by_key().values()))
    first = data.draw(st.integers(0, len(outputs) - 1))
    second = data.draw(st.integers(first, len(outputs) - 1))
    history = edit.history((outputs[second], [outputs[second], outputs[first]]))

    assert "duplicated" in found("relation", history)


@given(plans(kinds=["aborted", "again"], lives=0), st.data())
def test_two_outputs_change_places(plan: Plan, data: st.DataObject) -> None:
    """Order is kept in both modes where no restart excuses a step back."""
    edit = played(plan)
    several = [records for records in edit.by_key().values() if len({r.value for r in records}) > 1]
    outputs = some(data, several)
    first, second = data.draw(
        st.sampled_from(
            [(a, b) for a in outputs for b in outputs if a.offset < b.offset and a.value != b.value]
        )
    )
    history = edit.history((first, [second]), (second, [first]))

    assert found("relation", history) <= {"reordered", "lost", "duplicated"}
    assert found("relation", history) & {"reordered", "lost"}


@given(plans("ledger", modes=["at_least_once"], lives=0), st.data())
def test_a_step_back_without_a_restart(plan: Plan, data: st.DataObject) -> None:
    """At_least_once goes on from where it was unless somebody started again."""
    edit = played(plan)
    outputs = some(
        data, [records for records in edit.by_key().values() if len({r.value for r in records}) > 1]
    )
    back = data.draw(st.sampled_from([r for r in outputs if r.value != outputs[-1].value]))
    history = edit.history((outputs[-1], [outputs[-1], back, outputs[-1]]))

    assert found("relation", history) == {"reordered"}


@given(plans("ledger"), st.data())
def test_half_of_an_accounts_postings(plan: Plan, data: st.DataObject) -> None:
    """A row that holds some postings of an entry and not the others is torn."""
    edit = played(plan)
    entries = {e.at: e for log in edit.design.log for e in log}
    halves = []
    for row, (account, cents, count, entry) in _rows(edit, entries):
        amounts = [
            p.amount_cents
            for p in Envelope.FromString(entry.value or b"").postings
            if p.account == account
        ]
        halves += [
            (row, account, cents - sum(amounts[held:]), count - len(amounts) + held, entry)
            for held in range(1, len(amounts))
        ]
    row, account, cents, count, entry = some(data, halves)
    torn = Story().row(account, cents, count, entry)
    history = edit.history((row, [row._replace(value=torn.value)]))

    assert "torn" in found("relation", history)
    assert "torn" in found("whole", history)


def _rows(
    edit: Edit, entries: dict[str, Record]
) -> list[tuple[Record, tuple[str, int, int, Record]]]:
    """Return every row of a ledger with its account, cents, count and entry."""
    rows = []
    for row in edit.outputs:
        value = json.loads(row.value or b"")
        hop = Envelope.FromString(dict(row.headers)["chain"] or b"").chain[-1]
        entry = entries[f"{hop.topic}-{hop.partition}@{hop.offset}"]
        rows.append((row, (value["account"], value["balance_cents"], value["postings"], entry)))
    return rows


@given(plans("ledger", kinds=["aborted", "gap"]), st.data())
def test_an_account_is_left_out(plan: Plan, data: st.DataObject) -> None:
    """An entry that one of its accounts never gets is lost there.

    It is torn where another account has it.
    """
    entries = [e for log in Design(plan).log for e in log if e.visible]
    entry = some(data, [e for e in entries if _accounts(e)])
    account = data.draw(st.sampled_from(_accounts(entry)))
    history = played(plan, Sin(leaves_out=(entry, account))).history()

    assert "lost" in found("relation", history)
    assert len(_accounts(entry)) == 1 or found("whole", history) == {"torn"}


def _accounts(entry: Record) -> list[str]:
    return sorted({p.account for p in Envelope.FromString(entry.value or b"").postings})


@given(plans("ledger", kinds=["aborted", "aborted", "again"]), st.data())
def test_an_aborted_entry_is_counted(plan: Plan, data: st.DataObject) -> None:
    """A sum that holds one aborted entry is told as such, also in the rows behind it."""
    aborted = some(
        data, [e for log in Design(plan).log for e in log if not e.visible and _accounts(e)]
    )
    history = played(plan, Sin(counts=aborted)).history()

    assert "uncommitted-visible" in found("relation", history)
    assert "uncommitted-visible" in found("fold", history)


@given(plans("relay", kinds=["aborted", "aborted", "again"]), st.data())
def test_an_aborted_record_is_relayed(plan: Plan, data: st.DataObject) -> None:
    """A copy of an aborted record is told as such, and nothing else is wrong."""
    aborted = some(data, [e for log in Design(plan).log for e in log if not e.visible])

    assert found("relation", played(plan, Sin(counts=aborted)).history()) == {"uncommitted-visible"}


@given(plans("ledger", kinds=["again", "again", "gap"]))
def test_repeats_are_applied(plan: Plan) -> None:
    """A design that forgets an entry's first position counts upstream repeats."""
    log = Design(plan).log
    assume(
        any(
            len({e.value for e in each if _accounts(e)}) < sum(1 for e in each if _accounts(e))
            for each in log
        )
    )

    assert "duplicated" in found("relation", played(plan, Sin(applies_repeats=True)).history())


@given(plans("ledger"), st.data(), st.integers(-3, 3).filter(bool), st.booleans())
def test_a_value_is_off(plan: Plan, data: st.DataObject, off: int, cents: bool) -> None:
    """Any other balance or count is no state, in whatever way it went wrong."""
    edit = played(plan)
    entries = {e.at: e for log in edit.design.log for e in log}
    row, (account, balance, count, entry) = some(data, _rows(edit, entries))
    wrong = Story().row(account, balance + off * cents, count + off * (not cents), entry)
    history = edit.history((row, [row._replace(value=wrong.value)]))

    assert found("relation", history)
    assert found("fold", history) & set(ANOMALIES["fold"])
    assert found("preserved", history)


@given(plans(), st.data())
def test_a_key_is_spread(plan: Plan, data: st.DataObject) -> None:
    """A key in two partitions has no order."""
    edit = played(plan)
    outputs = some(data, [records for records in edit.by_key().values() if len(records) > 1])
    moved = data.draw(st.sampled_from(outputs))
    history = edit.history((moved, [moved._replace(partition=1 - moved.partition)]))

    assert "reordered" in found("relation", history)


@given(plans(), st.data(), st.sampled_from(["timestamp_ms", "headers", "value"]))
def test_lineage_is_changed(plan: Plan, data: st.DataObject, what: str) -> None:
    """Timestamp, headers, id and chain are the input's, in every output."""
    edit = played(plan)
    record = some(data, [r for r in edit.outputs if r.headers])
    if what == "timestamp_ms":
        change: dict[str, Any] = {what: record.timestamp_ms + data.draw(st.sampled_from([-1, 1]))}
    elif what == "headers":
        gone = data.draw(st.integers(0, len(record.headers) - 1))
        change = {what: record.headers[:gone] + record.headers[gone + 1 :]}
    else:
        assume(plan.program == "relay")
        envelope = Envelope.FromString(record.value or b"")
        envelope.ClearField(data.draw(st.sampled_from(["id", "chain", "timestamp_ms", "postings"])))
        change = {what: envelope.SerializeToString()}
        assume(change[what] != record.value)
    names = found("preserved", edit.history((record, [record._replace(**change)])))

    assert names == ({"lost"} if what == "headers" and plan.program == "relay" else {"phantom"})


@given(plans(), st.data())
def test_the_commit_is_ahead_of_the_outputs(plan: Plan, data: st.DataObject) -> None:
    """An offset that was committed before its output is behind-commit in both modes."""
    edit = played(plan)
    outputs = some(data, list(edit.by_key().values()))
    kept = data.draw(st.integers(0, len(outputs) - 1))
    assume(outputs[-1].value not in {record.value for record in outputs[:kept]})
    history = edit.history(*[(record, []) for record in outputs[kept:]])

    assert "behind-commit" in found("fold", history)


@given(plans(modes=["exactly_once"]), st.data())
def test_the_outputs_are_ahead_of_the_commit(plan: Plan, data: st.DataObject) -> None:
    """Under exactly_once nothing is visible whose input is not committed.

    Under at_least_once it may be.
    """
    edit = played(plan)
    output = some(data, [records[-1] for records in edit.by_key().values()])
    story = edit.design.story
    last = Envelope.FromString(
        output.value or b"" if plan.program == "relay" else dict(output.headers)["chain"] or b""
    ).chain[-1]
    positions = [*edit.design.state.positions]
    positions[last.partition] = last.offset
    story.settled(*positions)

    assert "ahead-of-commit" in found("fold", edit.history())


@given(plans(modes=["at_least_once"]), st.data())
def test_something_below_the_commit_comes_again(plan: Plan, data: st.DataObject) -> None:
    """After a restart nothing comes again that was committed at the kill."""
    edit = played(plan)
    edit.design.story.start()
    history = edit.history()
    assert found("below-the-commit", history) == set()
    history.add(some(data, edit.outputs)._replace(offset=1000))

    assert found("below-the-commit", history) == {"duplicated"}


@pytest.mark.parametrize("program", ["ledger", "relay"])
@given(data=st.data())
def test_random_bytes(program: str, data: st.DataObject) -> None:
    """An output of any bytes ends in an anomaly, never in a traceback."""
    story = Story(program)
    entry = story.entry(ada=1)
    value = data.draw(st.binary(max_size=40) | st.none())
    headers = data.draw(st.sampled_from([(), (("chain", b"\xff"),)]))
    story.row(
        "ada",
        1,
        1,
        entry,
        value=value,
        headers=headers,
        key=data.draw(st.sampled_from([b"ada", b"\xff", None])),
    )

    for check in ("relation", "preserved", "same-rows"):
        found(check, story.history)
    assert found("relation", story.history)
