import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import pytest
from pytest_bdd import parsers
from pytest_bdd.steps import StepFunctionContext

from upheld.lint import lint, step_definitions
from upheld.lint.grammar import skeleton
from upheld.protocol.manifest import Manifest

GUARANTEES = """
[tags]
replay = "again"
core = "judged usually"
full = "judged whole"
[G1]
promise = "A replay changes no sum."
family = "replay"
programs = ["branches"]
strength = "beyond"
since = "0.1.0"
status = "specified"
[G2]
promise = "Order is kept."
family = "replay"
programs = ["branches"]
strength = "beyond"
since = "0.1.0"
status = "untested"
why = "not specified yet"
"""
FEATURE = """
@replay
Feature: Replays
  A replay changes no sum.
  Documented in: An Article. Broken by: a design that forgets. Costs: an offset per key.

  @G1.replayed
  Scenario Outline: a replay changes no balance
    Given <program> runs in mode exactly_once on 4 partitions
    When it is killed
    Then nothing else changes on the broker

    @core
    Examples:
      | program |
      | branches |
"""
SECOND = """
  @G1.replayed-again @core
  Scenario: a second replay changes no balance
    Given branches runs in mode exactly_once on 4 partitions
    When it is killed
    Then nothing else changes on the broker
"""


def sentence(type_: Literal["given", "when", "then"] | None, text: str) -> StepFunctionContext:
    """Make a step definition as pytest-bdd's decorators do."""
    return StepFunctionContext(type=type_, step_func=lambda: None, parser=parsers.parse(text))


STEPS = [
    sentence("given", "{program} runs in mode {mode} on {partitions:d} partitions"),
    sentence("when", "it is killed"),
    sentence("then", "nothing else changes on the broker"),
]

Linted = Callable[..., list[str]]


@pytest.fixture
def linted(tmp_path: Path) -> Linted:
    """Lint a suite of one feature, with one thing about it changed."""

    def lint_with(
        *changes: tuple[str, str],
        more: str = "",
        guarantees: str = GUARANTEES,
        steps: list[StepFunctionContext] = STEPS,
        file: str = "replay/replays.feature",
        wrong: Sequence[Manifest] = (),
    ) -> list[str]:
        feature = FEATURE + more
        for old, new in changes:
            assert old in feature, "the change must change something"
            feature = feature.replace(old, new, 1)
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(feature)
        (tmp_path / "guarantees.toml").write_text(guarantees)
        return lint(tmp_path, steps, wrong)

    return lint_with


def test_a_sound_suite_has_no_findings(linted: Linted) -> None:
    """Nothing is found where nothing is wrong."""
    assert linted() == []
    assert linted(more=SECOND) == []


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ([("  A replay changes no sum.\n", "")], ":3: the feature's head has no promise"),
        (
            [("Documented in: An Article.", "")],
            ":3: the feature's head has no line “Documented in:”",
        ),
        (
            [("Broken by: a design that forgets.", "")],
            ":3: the feature's head has no line “Broken by:”",
        ),
        ([("Costs: an offset per key.", "")], ":3: the feature's head has no line “Costs:”"),
        (
            [("@G1.replayed\n", "\n")],
            ":8: a scenario has one id tag such as @G22.slug; this one has none",
        ),
        ([("@G1.replayed\n", "@G1.replayed @G1.twice\n")], "this one has G1.replayed, G1.twice"),
        ([("@G1.replayed\n", "@G1.Replayed\n")], "the tag @G1.Replayed is unknown"),
        ([("@replay\n", "@replay @G1.all\n")], "the id @G1.all stands above the scenario"),
        ([("@G1.replayed", "@G9.replayed")], "has no guarantee for the id G9.replayed"),
        ([("@G1.replayed", "@G2.replayed")], "says that G2 is untested"),
        ([("@G1.replayed", "@G2.replayed")], "guarantees.toml: G1 has no scenario"),
        ([("@replay\n", "@replay @fast\n")], "the tag @fast is unknown"),
        ([("@replay\n", "")], "the tag @replay of its family"),
        ([("    @core\n", "    @core @wide\n")], "@wide on Examples is not seen by the run"),
        (
            [("it is killed", "it is kicked")],
            ":10: no step definition matches “it is kicked” as a when",
        ),
        (
            [("When it is killed", "Then it is killed")],
            "no step definition matches “it is killed” as a then",
        ),
        (
            [("    Then nothing else changes on the broker\n", "")],
            ":10: a scenario ends on its side effects",
        ),
        ([("Then nothing else", "Given nothing else")], ":11: a scenario ends on its side effects"),
        (
            [("changes no balance", "should change no balance")],
            ":8: “should” is no plain present tense",
        ),
        (
            [("  A replay changes", "  A replay Should change")],
            ":4: “should” is no plain present tense",
        ),
        ([("      | branches |\n", "")], ":8: the Examples have no rows, so nothing is judged"),
        ([("| program |", "| proggy  |")], "<program> is no column of the Examples"),
        ([("| program |", "| proggy  |")], "no sentence uses the column proggy"),
        ([("| branches |", "| legder  |")], ":16: legder is no program"),
        (
            [("| branches |", "| relay   |")],
            ":16: G1 is promised of branches in guarantees.toml, not of relay",
        ),
        (
            [("| branches |", "| branches |\n      | branches |")],
            "2 rows are called G1.replayed[branches-exactly_once]",
        ),
        ([("runs in mode exactly_once", "runs")], ":16: no sentence says what runs"),
        ([("mode exactly_once", "mode quickly")], ":16: no sentence says what runs"),
        ([("Outline: a replay changes no balance", "Outline:")], ":8: the scenario has no name"),
        (
            [("    @core\n", "")],
            ":15: a row has one depth, @quick or @core or @full, above its Examples; this one has "
            "none",
        ),
        (
            [("    @core\n", "    @core @full\n")],
            ":16: a row has one depth, @quick or @core or @full, above its Examples; this",
        ),
        ([("@G1.replayed\n", "@G1.replayed @core\n")], ":8: @core stands above the scenario"),
        ([("@core", "@full")], "depths: core: G1 has a row on branches"),
        ([("@core", "@full")], "depths: core: the check side-effects is called"),
        ([("@core", "@full")], "depths: core: the anomaly leaked-topic can be named"),
        ([("@core", "@full")], "depths: core: branches runs in mode exactly_once"),
    ],
)
def test_a_wrong_feature_is_found(
    linted: Linted, changes: list[tuple[str, str]], finding: str
) -> None:
    """Each way of being wrong has a finding of its own."""
    assert any(finding in found for found in linted(*changes)), linted(*changes)


def test_a_mode_that_is_none_is_found(linted: Linted) -> None:
    """A mode that is named in the Examples is one of two."""
    found = linted(
        ("mode exactly_once", "mode <mode>"),
        ("| program |", "| program | mode |"),
        ("| branches |", "| branches | twice |"),
    )

    assert found == [
        "replay/replays.feature:16: twice is no mode; there are at_least_once and exactly_once."
    ]


@pytest.mark.parametrize(
    ("since", "finding"),
    [
        ('"99.0.0"', "G1 is there since 99.0.0, and this is"),
        (
            '"0.1.0"\nrows_since = { "G1.replayed[relay]" = "0.1.0" }',
            "rows_since of G1 names G1.replayed[relay], which is no row of it",
        ),
        (
            '"0.1.0"\nrows_since = { "G1.replayed[branches-exactly_once]" = "99.0.0" }',
            "G1.replayed[branches-exactly_once] is there since 99.0.0",
        ),
    ],
)
def test_a_version_that_cannot_be_is_found(linted: Linted, since: str, finding: str) -> None:
    """No row is of a later version than this one, and each version belongs to a row."""
    guarantees = GUARANTEES.replace('since = "0.1.0"', f"since = {since}", 1)

    (found,) = linted(guarantees=guarantees)

    assert finding in found


@pytest.mark.parametrize("other_file", [False, True])
def test_two_scenarios_of_one_name_are_found(linted: Linted, *, other_file: bool) -> None:
    """A name is taken in the whole suite, not in its file alone."""
    same = SECOND.replace("a second replay", "a replay")
    if other_file:
        linted(file="replay/a.feature")
        found = linted(("@G1.replayed", "@G1.other"), file="replay/b.feature")
    else:
        found = linted(more=same)

    assert len(found) == 1
    assert "the name “a replay changes no balance” is taken by replay/" in found[0]


def test_a_small_workload_has_a_reason(linted: Linted) -> None:
    """Fewer records than usual are asked for only under a comment that says why."""
    waits, steps = (
        "    And 399 records over 64 keys are in its input\n",
        [*STEPS, sentence("given", "{records} are in its input")],
    )

    [found] = linted(("partitions\n", f"partitions\n{waits}"), steps=steps)

    assert ":10: fewer than the usual 4000 records; a comment above says why" in found
    assert (
        linted(
            ("partitions\n", f"partitions\n    # one batch holds them all\n{waits}"), steps=steps
        )
        == []
    )


def test_a_duplicate_id_is_found(linted: Linted) -> None:
    """Two scenarios under one id could not be told apart in a report."""
    found = linted(more=SECOND.replace("@G1.replayed-again", "@G1.replayed"))

    [taken] = found
    assert (
        ":19: the id G1.replayed is taken by replay/replays.feature:8; ids are never reused"
        in taken
    )


def test_a_scenario_with_no_steps_is_found(linted: Linted) -> None:
    """pytest-bdd passes it."""
    found = linted(more="\n  @G1.empty @core\n  Scenario: nothing happens\n")

    assert found == ["replay/replays.feature:19: the scenario has no steps, so it would pass."]


def test_a_feature_with_no_scenario_is_found(linted: Linted, tmp_path: Path) -> None:
    """A file that judges nothing says so."""
    linted()
    (tmp_path / "replay" / "empty.feature").write_text(FEATURE.split("  @G1", maxsplit=1)[0])

    assert lint(tmp_path, STEPS, []) == ["replay/empty.feature:3: the feature has no scenario."]


def test_a_feature_outside_of_its_family_is_found(linted: Linted) -> None:
    """The folder is the family, however deep somebody files a feature."""
    found = linted(file="replay/deeper/replays.feature")

    assert found == [
        "replay/deeper/replays.feature:8: the tag @replay/deeper of its family, its folder, is "
        "missing."
    ]


def test_two_definitions_of_one_step_are_found(linted: Linted) -> None:
    """Of two that match the last would win silently; both places are named."""
    [ambiguous, unused] = linted(
        steps=[sentence("when", "it is {done}"), sentence(None, "it is paused"), *STEPS]
    )

    assert "replays.feature:10: 2 step definitions match “it is killed”" in ambiguous
    assert "(when “it is {done}”) and test_speclint.py:" in ambiguous
    assert "(None “it is paused”): no feature uses this sentence" in unused


def test_a_definition_of_another_kind_does_not_match(linted: Linted) -> None:
    """Given and When of one text are two sentences, as in pytest-bdd."""
    [unused] = linted(steps=[sentence("given", "it is killed"), *STEPS])

    assert "no feature uses this sentence" in unused


def test_too_many_templates_are_found(linted: Linted) -> None:
    """A hundred and twenty are enough; two definitions of one text count once."""
    extra = [sentence("when", f"it does {word(number)}") for number in range(118)]

    assert (
        "steps: 121 templates of sentences, 120 at most; let a sentence of the suite say what the "
        "new one says." in linted(steps=[*STEPS, *extra])
    )
    assert not any("at most" in found for found in linted(steps=[*STEPS, *extra[:117]]))
    assert not any("at most" in found for found in linted(steps=[*STEPS, *extra[:117], extra[0]]))


def word(number: int) -> str:
    """Return a word of its own for each number."""
    return "".join(chr(ord("a") + int(digit)) * 2 for digit in str(number))


@pytest.mark.parametrize(
    ("step", "finding"),
    [
        (
            sentence("when", f"it does {'so' * 37}"),
            "the template has 82 characters, 80 at most; say one fact",
        ),
        (
            StepFunctionContext(
                type="when", step_func=lambda: None, parser=parsers.re(r"it (?P<does>\w+) it")
            ),
            "the sentence is no parsers.parse(“literal”), so no editor finds it",
        ),
        (
            StepFunctionContext(
                type="when", step_func=lambda: None, parser=parsers.cfparse("it does {what}")
            ),
            "the sentence is no parsers.parse(“literal”), so no editor finds it",
        ),
        (
            sentence("when", "it starts( again)?"),
            "the sentence has an optional group; write two sentences",
        ),
        (
            sentence("when", "{a} and {b} and {c} and {d} and {e}"),
            "the sentence has 5 parameters, 4 at most; use a table",
        ),
        (
            sentence("when", "these instances were killed"),
            "the same sentence in other words as test_speclint.py",
        ),
        (
            sentence("when", "an instance is killed"),
            "the same sentence in other words as test_speclint.py",
        ),
    ],
)
def test_a_sentence_that_breaks_the_grammar_is_found(
    linted: Linted, step: StepFunctionContext, finding: str
) -> None:
    """A sentence is one short literal with a meaning of its own."""
    steps = [*STEPS, sentence("when", "the instance is killed"), step]

    assert any(finding in found for found in linted(steps=steps)), linted(steps=steps)
    assert not any(finding in found for found in linted(steps=steps[:-1]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("it waits {duration:Duration}", "it waits {count:d}"),
        ("records arrive", "records keep arriving"),
        (
            "its next {request:Request} is lost",
            "the response to its next {request:Request} is lost",
        ),
    ],
)
def test_another_meaning_is_another_skeleton(one: str, other: str) -> None:
    """A parameter of another type, or one more word, makes another sentence."""
    assert skeleton(one) != skeleton(other)


@pytest.mark.parametrize(
    ("line", "tag"),
    [
        ("its next EndTxn is lost", "@wire"),
        ("the broker is out of its reach", "@wire"),
        ("its transaction coordinator fails over", "@cluster"),
        ("the application is killed with a leader of its outputs silent", "@cluster"),
        ("the last states are visible within the commit interval plus 2 seconds", "@timed"),
    ],
)
def test_a_tag_that_a_line_needs_is_found_if_it_is_missing(
    linted: Linted, line: str, tag: str
) -> None:
    """So is a tag that no line needs; where the two agree nothing is said."""
    guarantees = GUARANTEES.replace("[tags]", f'[tags]\n{tag[1:]} = "needed"')
    steps = [*STEPS, sentence(None, line)]
    needs = ("    When it is killed\n", f"    When it is killed\n    And {line}\n")
    tagged = ("@G1.replayed\n", f"@G1.replayed {tag}\n")

    assert [
        "replay/replays.feature:8: a line of the scenario needs " + f"{tag}; tag the scenario."
    ] == linted(needs, guarantees=guarantees, steps=steps)
    assert (
        f"replay/replays.feature:8: no line of the scenario needs {tag}; drop the tag."
        in linted(tagged, guarantees=guarantees)
    )
    assert linted(needs, tagged, guarantees=guarantees, steps=steps) == []


def test_a_column_that_a_table_uses_is_used(linted: Linted) -> None:
    """A placeholder may stand in a cell below a line."""
    table = "    And it is set:\n      | interval | <interval> |\n"
    changes = (
        ("    When it is killed\n", f"{table}    When it is killed\n"),
        (
            "      | program |\n      | branches |",
            "      | program | interval |\n      | branches | 1 |",
        ),
    )

    assert linted(*changes, steps=[*STEPS, sentence("given", "it is set:")]) == []


def test_each_part_of_a_compound_promise_needs_a_scenario(linted: Linted) -> None:
    """The parts are counted against the slugs."""
    compound = GUARANTEES.replace('["branches"]', '["branches"]\nparts = ["once", "again"]', 1)

    assert linted(more=SECOND, guarantees=compound) == []
    assert linted(guarantees=compound) == [
        "guarantees.toml: G1 has fewer scenarios (1) than parts to promise: once; again."
    ]


@pytest.fixture
def step_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Write a package of steps of two modules."""
    package = tmp_path / "sentences_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "faults.py").write_text(
        "from pytest_bdd import given, parsers, when\n"
        "@when('it is killed')\n"
        "@given(parsers.parse('it was killed {times:d} times'))\n"
        "def _():\n    pass\n"
    )
    (package / "claims.py").write_text(
        "from pytest_bdd import then\nfrom sentences_of_a_test.faults import _ as killed\n"
        "@then('nothing else changes on the broker')\ndef _():\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield package.name
    for name in [name for name in sys.modules if name.startswith(package.name)]:
        del sys.modules[name]


def test_definitions_are_read_from_every_module_once(step_package: str) -> None:
    """The lint sees the sentences that pytest-bdd registers, without running pytest."""
    found = step_definitions(step_package)

    assert sorted((context.type, context.parser.name) for context in found if context.type) == [
        ("given", "it was killed {times:d} times"),
        ("then", "nothing else changes on the broker"),
        ("when", "it is killed"),
    ]
