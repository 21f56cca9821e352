import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from upheld.errors import UsageProblem
from upheld.protocol.messages import MODES
from upheld.spec import explain, selection
from upheld.spec.catalogue import Catalogue, load

GUARANTEES = """
[sources]
"article.txt" = "An Article"
[tags]
replay = "again"
transactions = "as one"
slow = "takes its time"
[G1]
promise = "A replay changes no sum."
family = "replay"
programs = ["ledger"]
source = "article.txt"
section = "The Details"
strength = "documented"
since = "0.1.0"
status = "specified"
[G22]
promise = "Each effect is seen once."
family = "transactions"
programs = ["all"]
strength = "beyond"
since = "0.1.0"
status = "specified"
[G30]
promise = "A standby shortens failover."
family = "replay"
programs = ["ledger"]
parts = ["with", "without"]
strength = "beyond"
since = "0.1.0"
status = "untested"
why = "not specified yet"
"""
REPLAY = """
@replay
Feature: Replays
  A replay changes no sum.
  Documented in: An Article. Broken by: a design that forgets
  its offset. Costs: an offset per key.

  @G1.replayed-after-a-crash
  Scenario Outline: a replay changes no balance
    Given <program> runs in mode <mode> on 4 partitions
    When it is killed
    Then nothing else changes on the broker

    Examples:
      | program | mode          |
      | ledger  | exactly_once  |
      | ledger  | at_least_once |

  @G1.replayed-by-a-relay
  Scenario: a relay upstream changes no balance
    Given ledger runs in mode exactly_once on 4 partitions
    And the relay upstream runs in mode at_least_once
    Then nothing else changes on the broker
"""
TRANSACTIONS = """
@transactions
Feature: Transactions

  Rule: crashes

    Background:
      Given 20000 entries wait

    @G22.dies @slow
    Scenario Outline: an effect is seen once
      When <program> runs in mode exactly_once
      And it is killed
      Then nothing else changes on the broker

      Examples:
        | program |
        | relay   |
        | ledger  |
"""


@dataclass(frozen=True)
class Design:
    """A manifest's promises, without the design."""

    name: str
    programs: tuple[str, ...] = ("relay", "ledger")
    modes: tuple[str, ...] = ("at_least_once", "exactly_once")
    spec: str | None = None
    previous: None = None
    application: object = None


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Lay out a small suite."""
    for name, text in {
        "guarantees.toml": GUARANTEES,
        "replay/replays.feature": REPLAY,
        "transactions/crashes.feature": TRANSACTIONS,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def catalogue(features: Path) -> Catalogue:
    """Read the small suite."""
    return load(features)


def test_rows_are_named_by_scenario_program_and_mode(catalogue: Catalogue) -> None:
    """Program and mode come from the Examples or from a line, in the order of files."""
    assert [row.id for row in selection.rows(catalogue)] == [
        "G1.replayed-after-a-crash[ledger-exactly_once]",
        "G1.replayed-after-a-crash[ledger-at_least_once]",
        "G1.replayed-by-a-relay[ledger-exactly_once]",
        "G22.dies[relay-exactly_once]",
        "G22.dies[ledger-exactly_once]",
    ]


def test_a_row_of_a_shape_is_named_by_its_instance(features: Path) -> None:
    """Ids never move, and an application without an adapter is judged on no other row."""
    feature = features / "replay/replays.feature"
    feature.write_text(feature.read_text().replace("ledger runs in mode", "a fold in mode", 1))
    found = load(features)

    (row,) = (row for row in selection.rows(found) if row.shape)
    assert (row.id, row.shape) == ("G1.replayed-by-a-relay[ledger-exactly_once]", "fold")
    assert row.needs == {("ledger", "exactly_once"), ("relay", "at_least_once")}
    orders = Design("orders", application="judged as it is")
    assert selection.promised(found, orders) == (row,)


def test_a_scenario_knows_its_feature_and_its_tags(catalogue: Catalogue) -> None:
    """Head, family, tags and the steps of a background and a rule are read."""
    replayed, dies = catalogue.by_id["G1.replayed-after-a-crash"], catalogue.by_id["G22.dies"]

    assert replayed.feature.promise == "A replay changes no sum."
    assert replayed.feature.broken_by == "a design that forgets its offset."
    assert replayed.feature.costs == "an offset per key."
    assert (dies.guarantee, dies.family, dies.tags) == (
        "G22",
        "transactions",
        frozenset({"@G22.dies", "@slow", "@transactions"}),
    )
    assert [step.type for step in dies.rows[0].steps] == ["given", "when", "when", "then"]
    assert dies.rows[1].steps[1].text == "ledger runs in mode exactly_once"


def test_a_table_belongs_to_its_line(features: Path) -> None:
    """A table as written has the placeholders, and in a row their values."""
    table = "\n      | interval | <mode> |"
    feature = features / "replay/replays.feature"
    feature.write_text(feature.read_text().replace("When it is killed", f"When it is:{table}", 1))
    scenario = load(features).by_id["G1.replayed-after-a-crash"]

    written, *_ = [step for step in scenario.steps if step.text == "it is:"]
    (first, _) = [step for row in scenario.rows for step in row.steps if step.text == "it is:"]

    assert written.table == (("interval", "<mode>"),)
    assert first.table == (("interval", "exactly_once"),)
    assert first.whole == "it is: interval exactly_once"


@pytest.mark.parametrize(
    ("design", "promised"),
    [
        (Design("all"), 5),
        (Design("no-relay", programs=("ledger",)), 3),
        (Design("exact", modes=("exactly_once",)), 3),
        (Design("exact-ledger", programs=("ledger",), modes=("exactly_once",)), 2),
        (Design("other", programs=("pulse",)), 0),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_design_promises_the_rows_of_its_programs_and_modes(
    catalogue: Catalogue, design: Design, promised: int
) -> None:
    """A row that runs two programs, or two modes, is promised by who has both."""
    assert len(selection.promised(catalogue, design)) == promised


@pytest.mark.parametrize(
    ("only", "ids"),
    [
        ("@slow", {"G22.dies"}),
        ("slow", {"G22.dies"}),
        ("not @slow", {"G1.replayed-after-a-crash", "G1.replayed-by-a-relay"}),
        ("@G1", {"G1.replayed-after-a-crash", "G1.replayed-by-a-relay"}),
        ("@G1.replayed-by-a-relay or @transactions", {"G1.replayed-by-a-relay", "G22.dies"}),
        ("@replay and not (@G1.replayed-by-a-relay or @slow)", {"G1.replayed-after-a-crash"}),
        ("@G30", set()),
    ],
)
def test_only_takes_a_tag_expression(catalogue: Catalogue, only: str, ids: set[str]) -> None:
    """Cucumber's expressions choose, and the @ may be left out.

    A guarantee's id stands for its scenarios.
    """
    chosen = selection.chooser(catalogue, only=only)

    assert {catalogue.by_row[row.id].id for row in selection.rows(catalogue, chosen)} == ids


def test_one_mode_is_enough_where_the_tag_says_so(features: Path) -> None:
    """A design is judged in exactly_once if it has both modes, or in its only one.

    A run that is asked for one mode judges in that.
    """
    feature = features / "replay/replays.feature"
    feature.write_text(
        feature.read_text().replace(
            "@G1.replayed-after-a-crash", "@G1.replayed-after-a-crash @one-mode"
        )
    )
    catalogue = load(features)

    def modes(design: Design, *asked: str) -> list[str | None]:
        rows = selection.promised(
            catalogue,
            design,
            lambda found, _: found.id == "G1.replayed-after-a-crash",
            asked or MODES,
        )
        return [row.mode for row in rows]

    assert modes(Design("all")) == ["exactly_once"]
    assert modes(Design("loose", modes=("at_least_once",))) == ["at_least_once"]
    assert modes(Design("all"), "at_least_once") == ["at_least_once"]


def test_one_program_is_enough_where_the_tag_says_so(features: Path) -> None:
    """A design is judged in each mode on the one of its programs with more state.

    A design with one program is judged on that.
    """
    feature = features / "replay/replays.feature"
    feature.write_text(
        feature.read_text()
        .replace("@G1.replayed-after-a-crash", "@G1.replayed-after-a-crash @one-program")
        .replace(
            "| ledger  | exactly_once  |",
            "| ledger  | exactly_once  |\n      | relay   | exactly_once  |",
        )
    )
    catalogue = load(features)

    def rows(*offered: str) -> set[tuple[str | None, str | None]]:
        promised = selection.promised(
            catalogue,
            Design("some", programs=offered),
            lambda found, _: found.id == "G1.replayed-after-a-crash",
        )
        return {(row.program, row.mode) for row in promised}

    assert rows("relay", "ledger") == {("ledger", mode) for mode in MODES}
    assert rows("relay") == {("relay", "exactly_once")}


def test_what_is_tagged_soak_is_asked_for(features: Path) -> None:
    """A row is judged if an expression names the tag or the scenario, and only then."""
    (features / "transactions/crashes.feature").write_text(
        TRANSACTIONS.replace("@slow", "@slow @soak")
    )
    catalogue = load(features)
    ids = {
        only: {
            catalogue.by_row[row.id].id
            for row in selection.rows(catalogue, selection.chooser(catalogue, only=only))
        }
        for only in ("@soak", "slow and soak", "@G22.dies", "@slow", "@G22", "not @replay")
    }

    assert "G22" not in {
        row.id.partition(".")[0] for row in selection.promised(catalogue, Design("all"))
    }
    assert [only for only, found in ids.items() if found == {"G22.dies"}] == [
        "@soak",
        "slow and soak",
        "@G22.dies",
    ]
    assert [only for only, found in ids.items() if not found] == ["@slow", "@G22", "not @replay"]


def test_only_and_guarantee_narrow_each_other(catalogue: Catalogue) -> None:
    """A row is chosen if both options choose it."""
    chosen = selection.chooser(catalogue, only="not @G1.replayed-by-a-relay", guarantees=["G1"])

    assert {row.id.partition("[")[0] for row in selection.rows(catalogue, chosen)} == {
        "G1.replayed-after-a-crash"
    }


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            lambda found: selection.chooser(found, only="@slwo"),
            "nothing is tagged @slwo. Did you mean @slow?",
        ),
        (
            lambda found: selection.chooser(found, only="@slow and"),
            "'@slow and' is no tag expression",
        ),
        (lambda found: selection.chooser(found, only="(@slow"), "Unclosed '('"),
        (
            lambda found: selection.chooser(found, guarantees=["G2"]),
            "G2 is no guarantee. Did you mean G22?",
        ),
        (lambda found: explain.explanation(found, "G99"), "G99 is no guarantee."),
    ],
)
def test_what_does_not_exist_is_refused(
    catalogue: Catalogue, wrong: Callable[[Catalogue], object], sentence: str
) -> None:
    """An unknown tag or guarantee is one sentence that tells what to do next."""
    with pytest.raises(UsageProblem) as refused:
        wrong(catalogue)

    assert sentence in str(refused.value)


def test_the_listing_counts_what_a_run_is_held_to(catalogue: Catalogue) -> None:
    """`list --json` holds rows, counts and promises of designs, and is plain JSON."""
    listing = json.loads(
        json.dumps(explain.listing(catalogue, [Design("exact", modes=("exactly_once",))]))
    )

    assert listing["guarantees"] == {"all": 3, "specified": 2, "untested": 1}
    assert listing["untested"] == [{"id": "G30", "why": "not specified yet"}]
    assert [row["id"] for row in listing["rows"]] == [row.id for row in selection.rows(catalogue)]
    assert listing["designs"]["exact"]["promised"] == len(listing["designs"]["exact"]["rows"]) == 3


def test_a_listing_can_be_narrowed(catalogue: Catalogue) -> None:
    """The chosen scenarios alone are listed and promised."""
    listing = explain.listing(
        catalogue, [Design("all")], selection.chooser(catalogue, only="@slow")
    )

    assert (listing["scenarios"], listing["designs"]["all"]["promised"]) == (1, 2)


def test_an_explanation_tells_promise_source_and_scenarios(catalogue: Catalogue) -> None:
    """An explanation has the promise, its source, its scenarios and their anomalies."""
    told = explain.as_text(
        explain.explanation(catalogue, "G1", anomalies_of=lambda _: ["duplicated", "lost"])
    )

    assert "G1  A replay changes no sum." in told
    assert "An Article, “The Details”" in told
    assert "Broken by:     a design that forgets its offset." in told
    assert "replay/replays.feature:9" in told
    assert "G1.replayed-after-a-crash[ledger-at_least_once]" in told
    assert "finds: duplicated, lost" in told


def test_an_explanation_of_an_untested_guarantee_says_why(catalogue: Catalogue) -> None:
    """Nobody takes silence for a promise that was judged."""
    told = explain.as_text(explain.explanation(catalogue, "G30"))

    assert "Untested:      not specified yet" in told
    assert "Part:          without" in told


def test_a_scenario_is_explained_by_its_guarantee(catalogue: Catalogue) -> None:
    """The id of a scenario or a row leads to the guarantee."""
    assert explain.explanation(catalogue, "G1.replayed-by-a-relay[ledger-exactly_once]").id == "G1"


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("guarantees.toml", "[G1", "is not TOML"),
        ("guarantees.toml", "G1 = 3", "[G1] is no table"),
        ("guarantees.toml", GUARANTEES.replace('"specified"', '"done"', 1), "[G1] status"),
        (
            "guarantees.toml",
            GUARANTEES.replace('why = "not specified yet"', ""),
            "[G30] why is given",
        ),
        (
            "guarantees.toml",
            GUARANTEES.replace('section = "The Details"', ""),
            "[G1] source and section",
        ),
        ("guarantees.toml", GUARANTEES.replace('["all"]', '["some"]'), "[G22] some is no program"),
        (
            "guarantees.toml",
            GUARANTEES.replace('"replay"', '"again"', 1),
            "[G1] is of the family 'again'",
        ),
        (
            "guarantees.toml",
            GUARANTEES.replace('source = "article', 'source = "book'),
            "gives no title",
        ),
        ("replay/replays.feature", "Given nothing\n", "is no feature: (1:1)"),
        ("replay/replays.feature", "# nothing\n", "holds no feature"),
        (
            "replay/replays.feature",
            "Feature: a\n  Scenario Outline: b\n    Given <(>\n\n    Examples:\n      | ( |\n"
            "      | 1 |\n",
            "replays.feature, line 6: the column '(' of Examples is not named by letters",
        ),
        ("guarantees.toml", "sources = 3\n", "[sources] is no table of texts"),
        ("guarantees.toml", "[tags]\na = 3\n", "[tags] is no table of texts"),
    ],
)
def test_a_broken_catalogue_is_refused(features: Path, file: str, text: str, sentence: str) -> None:
    """A file that cannot be understood is named, with the reason, in one sentence."""
    (features / file).write_text(text)

    with pytest.raises(UsageProblem) as refused:
        load(features)

    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_no_catalogue_is_refused(tmp_path: Path) -> None:
    """A folder without guarantees.toml is no suite."""
    with pytest.raises(UsageProblem, match=r"guarantees\.toml cannot be read: No such file"):
        load(tmp_path)


def test_the_catalogue_lists_every_guarantee() -> None:
    """Each promise stands once, and the numbers up to 70 have no gap.

    Later ones have their numbers before they are specified. An unspecified guarantee says why.
    """
    guarantees = load().guarantees
    count = len(guarantees)

    assert count >= 70
    numbers = {int(name.removeprefix("G")) for name in guarantees if name != "SLA"}
    assert len(numbers) == count - 1
    assert set(range(1, 71)) <= numbers
    assert len({guarantee.promise for guarantee in guarantees.values()}) == count
    assert all(bool(guarantee.why) != guarantee.specified for guarantee in guarantees.values())
    assert {name for name, guarantee in guarantees.items() if guarantee.strength == "beyond"} == {
        f"G{number}" for number in numbers if number >= 39
    }
