import re

import pytest

from upheld.families import Family
from upheld.spec import catalogue, selection
from upheld.spec.fault_families import SENTENCES, families, families_of

FOUND = catalogue.load()
QUIET = (  # sentences that do something and strike nothing, by how they begin
    "it starts",
    "it drains",
    "it is stopped gracefully",
    "it says how much it holds",
    "its disks are kept as they are",
    "some rows have",
    "the paused instance goes on",
    "the relay starts",
)


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("it is killed with a transaction open", {Family.PROCESS}),
        ("it is killed before its next EndTxn", {Family.PROCESS, Family.REQUEST}),
        (
            "it is paused with a transaction open, and a successor drains its input",
            {Family.PROCESS},
        ),
        ("b joins and a is killed while more of them arrive", {Family.PROCESS, Family.MEMBERSHIP}),
        (
            "a second cluster stands by, and takes over while more of them arrive",
            {Family.MEMBERSHIP},
        ),
        ("the answer to its next Produce is lost with its connection", {Family.REQUEST}),
        ("the broker is killed with a transaction open, and comes back", {Family.BROKER}),
        ("more of them arrive for 5 seconds, and its store is slow meanwhile", {Family.STORE}),
        ("the file that it wrote last is torn", {Family.DISK}),
        (
            "5 events of one customer arrive 300 ms apart, while the wall clock jumps 60 s back",
            {Family.CLOCK},
        ),
        ("4000 republished entries over 64 accounts wait in its input", {Family.INPUT}),
        ("a record that is no JSON arrives in its input", {Family.INPUT}),
        ("4000 entries over 64 accounts wait in its input", set()),
        ("it starts again and drains its input", set()),
    ],
)
def test_a_sentence_tells_its_families(sentence: str, found: set[Family]) -> None:
    """A sentence that makes a fault says what the fault is done to."""
    assert families_of(sentence) == found


def test_every_family_strikes_some_row() -> None:
    """No family is a word alone, and no pattern matches nothing."""
    sentences = {
        step.text for row in selection.rows(FOUND) for step in row.steps if step.type != "then"
    }

    assert {family for row in selection.rows(FOUND) for family in families(row)} == set(Family)
    assert [
        pattern for pattern in SENTENCES if not any(re.search(pattern, text) for text in sentences)
    ] == []


def test_whoever_writes_a_sentence_says_its_family() -> None:
    """Each sentence of an action has a family of faults, or brings input.

    Any other is listed here as one that strikes nothing.
    """
    silent = {
        step.text
        for row in selection.rows(FOUND)
        for step in row.steps
        if step.type == "when" and not families_of(step.text) and not step.text.startswith(QUIET)
    }

    brings_input = ("arrive", "every row", "every partner", "they go again", "more rows come")
    assert {text for text in silent if not any(words in text for words in brings_input)} == set()
