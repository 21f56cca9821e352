"""Every name of the suite has a meaning, and the meaning has a text."""

import pytest

from upheld.checks import ANOMALIES, CHECKS
from upheld.judging.claims import CLAIMS
from upheld.judging.meanings import Known, as_text, meanings, names
from upheld.programs import PROGRAMS
from upheld.protocol.manifest import load
from upheld.spec.catalogue import load as load_catalogue

KNOWN = Known(load_catalogue(), [load("plain"), load("broken/forgets_the_applied_offset")])


def facts(name: str, kind: str) -> dict[str, list[str]]:
    """Return what else is known of one meaning of a name."""
    (found,) = (meaning for meaning in meanings(KNOWN, name) if meaning.kind == kind)
    return found.facts


@pytest.mark.parametrize("name", sorted(names(KNOWN.found)))
def test_every_name_has_a_sentence(name: str) -> None:
    """The sentence is one, and ends as one."""
    for meaning in meanings(KNOWN, name):
        assert meaning.sentence.endswith("."), meaning
        assert len(meaning.sentence) > 20


def test_an_anomaly_names_its_checks_and_a_design_that_shows_it() -> None:
    """A reader of a red card sees where it comes from."""
    found = facts("duplicated", "anomaly")

    assert {"fold", "relation", "once"} <= set(found["found by"])
    assert "G1" in found["guarantees"]
    assert facts("leaked-topic", "anomaly")["guarantees"] == ["all"]
    assert "G1" not in facts("fenced-but-emitting", "anomaly")["guarantees"]
    assert found["shown by"] == ["broken/forgets_the_applied_offset"]


def test_a_check_names_its_sentences_and_scenarios() -> None:
    """A check that nobody uses would have none."""
    for name in CHECKS:
        found = facts(name, "check")
        assert found["sentences"], name
        assert found["scenarios"], name
        assert found["finds"] == list(ANOMALIES[name])


def test_a_program_has_its_contract() -> None:
    """It is the docstring of the program's module, and says what it reads."""
    for name, program in PROGRAMS.items():
        (meaning,) = meanings(KNOWN, name)
        assert program.reads in meaning.sentence + meaning.text
        assert meaning.facts["writes"] == [program.writes]
        assert meaning.facts["designs"] == ["plain"]


def test_a_name_may_have_several_meanings() -> None:
    """A check and a capability are both called `lag`."""
    assert [meaning.kind for meaning in meanings(KNOWN, "lag")] == ["check", "capability"]
    assert facts("lag", "capability")["scenarios"] == ["G65.lag-is-true"]


def test_a_sentence_that_judges_is_explained_by_its_check() -> None:
    """The sentence is typed as a feature has it, with its parameters filled in."""
    (meaning,) = meanings(KNOWN, "it leaves no transaction open")

    assert (meaning.kind, meaning.name) == ("check", "released")
    assert {claim.check for claim in CLAIMS} == set(CHECKS)


def test_a_terminal_wraps_and_a_pipe_does_not() -> None:
    """Lines are wrapped between words, below the first name."""
    (meaning,) = meanings(KNOWN, "redis")

    narrow = as_text(meaning, 60)
    assert max(map(len, narrow.splitlines())) <= 60
    assert "".join(narrow.split()) == "".join(as_text(meaning).split())
    assert len(as_text(meaning).splitlines()) == 4


def test_what_is_unknown_has_no_meaning() -> None:
    """The caller refuses it."""
    assert meanings(KNOWN, "nothing-of-ours") == []
