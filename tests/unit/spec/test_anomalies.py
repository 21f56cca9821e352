"""The sentences that describe anomalies."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import upheld
from upheld.checks import ANOMALIES
from upheld.spec.anomalies import Described, anomalies

PACKAGE = Path(upheld.__file__).parent
MOST_WORDS = 25


def sentences(said: Described) -> tuple[str, ...]:
    """Return every sentence about an anomaly."""
    return (said.meaning, *said.causes, *said.look)


def named_at_once() -> Iterator[str]:
    """Yield the anomalies that the harness names in `Violated.one(NAME, …)`."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Violated.one":
                assert isinstance(node.args[0], ast.Constant), path
                yield str(node.args[0].value)


def test_every_anomaly_is_described_and_no_other() -> None:
    """An anomaly without sentences would be a word that helps nobody."""
    found = {name for names in ANOMALIES.values() for name in names}

    assert set(anomalies()) == found
    assert set(named_at_once()) <= found


def test_the_sentences_are_short() -> None:
    """A reader has ten seconds."""
    every = [each for said in anomalies().values() for each in sentences(said)]

    assert [each for each in every if len(re.findall(r"\S+", each)) > MOST_WORDS] == []
    assert len(set(every)) == len(every)
