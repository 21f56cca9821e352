"""The oracle `itself` is counted beside the models of programs."""

import subprocess
from pathlib import Path

import itself
import pytest
from histories import EPOCH_MS, begun
from itself import (
    EVERY_STATE,
    LAST_VALUES,
    Cell,
    Found,
    Kill,
    Place,
    asked_of_applications,
    erring_of,
    errs_alone,
    firsts,
    judge,
    known,
    lines,
    of_every_state,
    rows_in,
    sample,
    save,
    table,
)

from upheld.generators.envelope_pb2 import Envelope, Hop
from upheld.history import History
from upheld.history.events import Answered, Application, Contract, Record
from upheld.programs.itself import Itself, digest_of
from upheld.protocol.manifest import load
from upheld.report import RowResult
from upheld.spec import kills
from upheld.verdicts import Verdict

NOWHERE = Path("nowhere")


def row_of(name: str, verdict: Verdict, reason: str = "") -> RowResult:
    """Return a row of design d."""
    return RowResult(
        design="d",
        id=name,
        guarantee="G1",
        name="n",
        verdict=verdict,
        reason=reason,
        seconds=1,
    )


def line(name: str, verdict: Verdict) -> str:
    """Return the line of a report on a row of design d."""
    return row_of(name, verdict).model_dump_json()


def found_of(form: str, **verdicts: Verdict) -> dict[Place, Found]:
    """Return rows of design d without histories."""
    return {
        Place(form, "d", name): Found(row_of(name, verdict), NOWHERE)
        for name, verdict in verdicts.items()
    }


def test_the_kills_of_models_are_known() -> None:
    """Every kind of fault has kills in both shapes, but for torn outputs of a relay."""
    found = {(kill.shape, kill.kind) for kill in known()}

    assert found >= {("fold", kind) for kind in ("loss", "duplicate", "torn", "not restored")} | {
        ("map", kind) for kind in ("loss", "duplicate", "order")
    }


def test_what_is_caught_is_counted_by_shape_and_kind() -> None:
    """A row that cannot be judged is not caught; one that was not judged is left out."""
    kills = [Kill("d", row, "map", "loss") for row in "abcd"]
    kills += [Kill("d", "e", EVERY_STATE, "torn"), Kill("w", "a", "map", "loss")]
    found = found_of(
        "as-it-is", a=Verdict.VIOLATED, b=Verdict.UPHELD, c=Verdict.UNSUPPORTED
    ) | found_of("every-state", e=Verdict.VIOLATED)

    assert table(kills, found, {Place("as-it-is", "w", "a").kin}) == {
        ("fold", "torn"): Cell(1, 1, 0),
        ("map", "loss"): Cell(3, 1, 1, 1),
    }


def test_a_sample_is_the_same_each_time_and_holds_the_smaller_ones() -> None:
    """It is bounded for each shape and kind, whatever the order of the kills."""
    kills = [Kill("d", row, "map", kind) for row in "abcdefgh" for kind in ("loss", "torn")]

    found = sample(kills, 3)

    assert len(found) == 6
    assert found == sample(reversed(kills), 3)
    assert set(sample(kills, 2)) < set(found)
    assert {kill.kind for kill in sample(kills, 1)} == {"loss", "torn"}


def test_what_has_a_verdict_is_not_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was cut short goes on with the other rows."""
    asked = list[str]()
    monkeypatch.setattr(itself, "rows_in", lambda _: found_of("as-it-is", a=Verdict.UPHELD))
    monkeypatch.setattr(
        subprocess,
        "run",
        lambda *_, **__: asked.append((tmp_path / "as-it-is" / "0.rows").read_text()),
    )

    judge([Kill("d", row, "map", "loss") for row in "ab"], tmp_path, 1)

    assert asked == ["d b\n"]


def test_a_ledger_is_judged_in_two_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second form sends a state for every record, and says so."""
    asked = list[list[str]]()
    monkeypatch.setattr(subprocess, "run", lambda command, **_: asked.append(command))
    name = "broken/commits_before_output"

    judge([Kill(name, "a", shape, "loss") for shape in (LAST_VALUES, EVERY_STATE)], tmp_path, 1)

    designs = [command[command.index("--design") + 1] for command in asked]
    assert designs[0] == name
    assert load(designs[1]).emits == "every-state"


def test_a_design_that_sends_every_state_is_the_same_otherwise(tmp_path: Path) -> None:
    """Its name, and what it promises, stay."""
    name = "broken/commits_before_output"
    shipped = load(name)

    changed = load(str(of_every_state(name, tmp_path)))

    assert changed.name == name
    assert changed.command[-1] == "upheld.impl.broken.commits_before_output"
    assert (changed.programs, changed.modes) == (shipped.programs, shipped.modes)


@pytest.mark.parametrize(
    ("answers", "errs"),
    [(["e0", "e1"], False), (["e0"], True), (["e1", "e1"], True), ([], True)],
)
def test_a_run_without_a_fault_is_compared_with_the_model(
    answers: list[str], *, errs: bool
) -> None:
    """The outputs that are due have the places of the copy."""
    contract = Contract(name="relay", reads="input", writes="output", format="envelope")
    application = Application(
        name="app",
        application_id="app",
        program="relay",
        mode="exactly_once",
        topics={"input": "in", "output": "out"},
        parameters={},
        transaction_timeout_ms=3000,
        contract=contract,
    )
    inputs = [envelope("in", 7 + number, f"e{number}") for number in range(2)]
    outputs = [
        envelope("asked", offset, name, Hop(topic="copy", offset=int(name[1:])))
        for offset, name in enumerate(answers)
    ]
    answer = Answered(
        at_ms=0,
        application="app",
        inputs=digest_of(inputs),
        outputs="asked",
        topics=("asked", "copy"),
    )
    history = History([begun(design="d"), application, *inputs, *outputs, answer])

    assert errs_alone(history, application, Itself(history, "app", contract)) is errs
    unasked = History([begun(design="d"), application, *inputs])
    assert errs_alone(unasked, application, Itself(unasked, "app", contract)) is None


def envelope(topic: str, offset: int, name: str, *chain: Hop) -> Record:
    """Return a record of an envelope."""
    value = Envelope(id=name, chain=chain).SerializeToString()
    return Record(topic, 0, offset, EPOCH_MS, b"k", value, (), True)


def test_a_design_that_does_not_drain_without_a_fault_errs() -> None:
    """Other failures of the harness, and rows without a history, show nothing."""
    said = "d does not drain its own input in 30 s, with nothing to strike it"
    rows = {"G1.a[relay-exactly_once]": said, "G1.a[ledger-exactly_once]": "the disk is full"}
    found = {
        Place("as-it-is", "d", name): Found(row_of(name, Verdict.HARNESS_ERROR, reason), NOWHERE)
        for name, reason in rows.items()
    }

    assert erring_of(found) == {("as-it-is", "d", "relay", "exactly_once")}


def test_the_first_rows_show_each_run_without_a_fault() -> None:
    """It hangs on the program and the mode, and not on what strikes the row."""
    rows = (
        "G1.a[relay-exactly_once]",
        "G2.b[relay-exactly_once-after]",
        "G1.a[relay-at_least_once]",
    )

    assert len(firsts(Kill("d", row, "map", "loss") for row in rows)) == 2


def test_the_table_shows_the_share_of_what_models_catch() -> None:
    """Rows that cannot be judged have a column of their own."""
    shown = lines({("map", "loss"): Cell(4, 3, 1, 2), ("map", "torn"): Cell(0, 0, 0, 3)})

    assert shown.splitlines()[2:] == [
        "| map | loss | 4 | 3 | 75% | 1 | 2 |",
        "| map | torn | 0 | 0 | - | 0 | 3 |",
    ]


def test_a_report_that_was_cut_short_has_verdicts(tmp_path: Path) -> None:
    """Its last line may be half written, and a summary is missing."""
    lane = tmp_path / "as-it-is" / "0" / "lane-1"
    lane.mkdir(parents=True)
    row = line("a", Verdict.VIOLATED)
    (lane / "report.jsonl").write_text(f"{row}\n{row[:20]}")

    found = rows_in(tmp_path)

    assert {place: each.row.verdict for place, each in found.items()} == {
        Place("as-it-is", "d", "a"): Verdict.VIOLATED
    }


def test_verdicts_are_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the form of the kill matrix; wrong logic is named, and not caught."""
    for name in ("BY_ITSELF", "BY_LAST_VALUE"):
        monkeypatch.setattr(itself, name, tmp_path / name)
    every_kill = [Kill("d", row, "map", "loss") for row in "ab"]
    every_kill += [Kill("d", "a", LAST_VALUES, "loss"), Kill("w", "a", LAST_VALUES, "loss")]
    found = found_of("as-it-is", a=Verdict.VIOLATED, b=Verdict.UPHELD)

    save(every_kill[:2], found, ())
    by_itself = kills.load(tmp_path / "BY_ITSELF").designs
    save(every_kill[2:], found, {Place("as-it-is", "w", "a").kin})
    by_last_value = kills.load(tmp_path / "BY_LAST_VALUE").designs

    assert by_itself["d"].rows() == {"a", "b"}
    assert by_last_value["d"].killed.keys() == {"a"}
    assert by_last_value["w"].unproven == {"a": "wrong-logic"}


def test_rows_of_programs_alone_are_left_out() -> None:
    """An application has no relay before it, whatever a model catches there."""
    every = list(known())

    left = list(asked_of_applications(every))

    assert any(kill.row.startswith("G7.relay") for kill in every)
    assert left
    assert not any(kill.row.startswith("G7.relay") for kill in left)
