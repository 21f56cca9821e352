"""The claims and faults of each row, as the sentences make them."""

import json
import re
from pathlib import Path

import pytest
from transcripts import show

from upheld.judging.claims import claim_of
from upheld.judging.scenario import struck_before
from upheld.spec.catalogue import load
from upheld.spec.gherkin import Row

ROWS = {row.id: row for scenario in load().scenarios for row in scenario.rows}
CALLS: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[2] / "data" / "golden" / "transcript.json").read_text("utf-8")
)
CLAIM = re.compile(r"trial\.claim\('(?P<check>[^']+)',(?P<application>app:[^,)]+),?(?P<said>.*)\)")
LATER = "trial.rig.later_abort_ms+"  # what a foreign broker adds to a bound
# The calls that leave a mark, or wait for what leaves one.
MARKING = re.compile(
    r"pause_at|meet\(|membership\.(lose|kill_worker|switch_clusters|switch_back|start_another)"
    r"|stores\.disturb|disks\.(run_full|tear|wipe|set_back)|brokers\.|rejections\.|pauses\."
    r"|out_of_reach\(|topics\.|trial\.await_cleaner|trial\.mark\(<Happening\.CLOCK"
)


def due(row: Row) -> set[tuple[str, str]]:
    """Return check and arguments of each claim of a row, by the table of claims."""
    found = set[tuple[str, str]]()
    for step in row.steps:
        if claim := claim_of(step.text):
            said = sorted(claim.arguments(step).items())
            found.add((claim.check, ",".join(f"{name}={show(value)}" for name, value in said)))
    return found


def test_the_table_has_the_arguments_of_the_steps() -> None:
    """The judge expects each claim of each row as its step makes it."""
    made = {
        name: {
            (found["check"], found["said"].replace(f"'{LATER}", "").replace("'", ""))
            if LATER in found["said"]
            else (found["check"], found["said"])
            for call in calls
            if (found := CLAIM.fullmatch(call))
        }
        for name, calls in CALLS.items()
    }

    assert made.keys() == ROWS.keys()
    assert {name: due(row) for name, row in ROWS.items()} == made


def test_every_claim_comes_after_a_start_and_input() -> None:
    """No row of a right design lacks what each check must have seen."""
    for name, calls in CALLS.items():
        for place, call in enumerate(calls):
            if found := CLAIM.fullmatch(call):
                before = [each for each in calls[:place] if found["application"] in each]
                assert any("start" in each or "take_over" in each for each in before), name
                assert any("feed" in each or "input" in each for each in before), name


def test_every_fault_that_is_asked_for_leaves_its_mark_before() -> None:
    """A claim asks for no more marks than calls have left by then."""
    for name, row in ROWS.items():
        claims = [place for place, call in enumerate(CALLS[name]) if CLAIM.fullmatch(call)]
        sentences = [step.text for step in row.steps if claim_of(step.text)]
        if len(claims) != len(sentences):  # of several applications
            continue
        for number, (sentence, place) in enumerate(zip(sentences, claims, strict=True)):
            struck = struck_before(row, sentence, sentences[:number].count(sentence))
            left = [call for call in CALLS[name][:place] if MARKING.search(call)]
            assert len(struck) <= len(left), (name, sentence)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_the_first_application_is_that_of_the_row(name: str) -> None:
    """Its program and mode are among those that the row needs, as the judge demands."""
    declared = [
        found.groups()
        for call in CALLS[name]
        if "'name': 'upstream'" not in call
        if (found := re.match(r"trial\.declare\((\w+),(\w+),", call))
    ]

    assert not declared or declared[0] in ROWS[name].needs
