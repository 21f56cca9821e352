import re

import pytest

from upheld.families import Family
from upheld.spec import catalogue, selection
from upheld.spec.fault_families import SENTENCES, families, families_of

FOUND = catalogue.load()
QUIET = (  # lines that do something and strike nothing, by how they begin
    "the application starts",
    "the earlier release starts",
    "the later release starts",
    "the application drains",
    "the application is stopped gracefully",
    "the application is told to stop, twice if it is reusable",
    "the application stays idle",
    "the second application",
    "the relay starts",
    "the relay drains",
    "the paused instance goes on",
    "a successor takes its place",
    "the successor drains its input",
    "a second cluster stands by",
    "the first cluster stands by",
    "the size of its state is measured",
    "its disks are copied",
    "the changes hold",
    "records keep arriving",
    "the arrivals end",
    "the delete retention passes",
)


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("the application is killed with a transaction open", {Family.PROCESS}),
        (
            "the application is killed with a leader of its outputs silent",
            {Family.PROCESS, Family.BROKER},
        ),
        ("the application is killed before its next EndTxn", {Family.PROCESS, Family.REQUEST}),
        ("the application is paused with a transaction open", {Family.PROCESS}),
        ("instance b joins", {Family.MEMBERSHIP}),
        ("instance a is killed", {Family.PROCESS, Family.MEMBERSHIP}),
        ("the second cluster takes over", {Family.MEMBERSHIP}),
        ("the first cluster takes over", {Family.MEMBERSHIP}),
        ("the response to its next Produce is lost with its connection", {Family.REQUEST}),
        ("the broker restarts after a crash with a transaction open", {Family.BROKER}),
        ("its store is slow for 3 seconds", {Family.STORE}),
        ("the newest file that it reads back is torn", {Family.DISK}),
        ("its wall clock jumps 60 seconds back", {Family.CLOCK}),
        ("4000 republished records over 64 keys are in its input", {Family.INPUT}),
        ("a record that is no JSON arrives in its input", {Family.INPUT}),
        ("4000 records over 64 keys are in its input", set()),
        ("the application starts", set()),
    ],
)
def test_a_sentence_tells_its_families(sentence: str, found: set[Family]) -> None:
    """A sentence that makes a fault says what the fault is done to."""
    assert families_of(sentence) == found


def test_every_family_strikes_some_row() -> None:
    """No family is a word alone, and no pattern matches nothing."""
    sentences = {
        step.whole for row in selection.rows(FOUND) for step in row.steps if step.type != "then"
    }

    assert {family for row in selection.rows(FOUND) for family in families(row)} == set(Family)
    assert [
        pattern for pattern in SENTENCES if not any(re.search(pattern, text) for text in sentences)
    ] == []


def test_whoever_writes_a_sentence_says_its_family() -> None:
    """Each action has a family of faults, brings input or lets time pass.

    Any other is listed here as one that strikes nothing.
    """
    silent = {
        step.text
        for row in selection.rows(FOUND)
        for step in row.steps
        if step.type == "when" and not families_of(step.whole) and not step.text.startswith(QUIET)
    }

    brings_input = (
        "arrive",
        "every row",
        "every partner",
        "rows are deleted",
        "more rows arrive",
        "pass",
    )
    assert {text for text in silent if not any(words in text for words in brings_input)} == set()
