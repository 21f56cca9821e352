"""The wrong designs are short, and name scenarios that are there.

Each anomaly has a wrong design that shows it.
"""

import ast
from pathlib import Path

import pytest

from upheld.checks import ANOMALIES
from upheld.errors import UsageProblem
from upheld.judging.claims import anomalies_of
from upheld.protocol.manifest import ExpectedViolation, Manifest, load, shipped
from upheld.spec import catalogue
from upheld.spec.selection import Request, chosen_rows, rows_of_the_mutant

SINS = [name for name in shipped() if name.startswith("broken/")]
LINES_MAX = 40
UNSHOWN: dict[str, str] = {}  # an anomaly that no wrong design shows -> why
EVERYTHING = Request(depth="full")
FOUND = catalogue.load()


def sinful(name: str) -> tuple[Manifest, ExpectedViolation]:
    """Return a wrong design, and its sin."""
    design = load(name)
    assert design.sin
    return design, design.sin


@pytest.mark.parametrize("name", SINS)
def test_one_short_module(name: str) -> None:
    """A wrong design is one module of at most 40 lines that derives from a right one.

    The module says what is wrong, which design does it and what shows it.
    """
    design, _ = sinful(name)
    modules = [file for file in Path(design.folder).glob("**/*.py") if file.read_text()]
    text = modules[0].read_text()

    assert design.name == name
    assert len(modules) == 1
    assert len(text.splitlines()) <= LINES_MAX
    assert all(word in (ast.get_docstring(ast.parse(text)) or "") for word in ("mistake", "show"))
    assert "from upheld.impl.plain import" in text


@pytest.mark.parametrize("name", SINS)
def test_names_what_is_there(name: str) -> None:
    """Its scenarios can find its anomaly.

    It is judged on them and on its control alone.
    """
    design, sin = sinful(name)
    rows = rows_of_the_mutant(FOUND, design)

    assert chosen_rows(EVERYTHING, FOUND, [design]) == {name: rows}
    assert sin.control in rows
    assert not {sin.control, FOUND.by_row[sin.control].id} & set(sin.scenarios)
    for scenario in sin.scenarios:
        assert sin.anomaly in anomalies_of(FOUND.by_row.get(scenario) or FOUND.by_id[scenario])


def test_every_anomaly_is_shown() -> None:
    """Each anomaly that a check can name has a wrong design, or a reason for none."""
    known = {anomaly for anomalies in ANOMALIES.values() for anomaly in anomalies}

    assert {sinful(name)[1].anomaly for name in SINS} == known - set(UNSHOWN)


def test_judged_on_more_where_asked() -> None:
    """A choice on the command line counts more than what the sin names."""
    design, _ = sinful("broken/reads_uncommitted")
    asked = Request(only="@G1", modes=["at_least_once"])

    assert chosen_rows(asked, FOUND, [design])[design.name] == {
        "G1.replayed-after-a-crash[ledger-at_least_once]"
    }


@pytest.mark.parametrize(
    ("scenarios", "says"),
    [
        (("G1.replayed",), "there is no such scenario or row"),
        (
            ("G40.aborted-upstream[ledger-exactly_once]",),
            "which the design's programs and modes leave out",
        ),
    ],
)
def test_a_sin_that_nothing_can_show(scenarios: tuple[str, ...], says: str) -> None:
    """A scenario that is missing, or not judged on the design, is refused.

    It is refused before a broker is started.
    """
    design = load("plain").model_copy(
        update={
            "modes": ("at_least_once",),
            "sin": ExpectedViolation(scenarios=scenarios, anomaly="lost"),
        }
    )

    with pytest.raises(UsageProblem, match=says):
        chosen_rows(EVERYTHING, FOUND, [design])


def test_one_row_of_each_program() -> None:
    """The first row of each program is judged, of a scenario that a sin names.

    Rows that it names besides are judged too.
    """
    design, _ = sinful("broken/reads_uncommitted")

    assert {
        row for row in rows_of_the_mutant(FOUND, design) if row.startswith("G40.aborted-upstream")
    } == {
        "G40.aborted-upstream[ledger-at_least_once]",
        "G40.aborted-upstream[relay-at_least_once]",
    }
