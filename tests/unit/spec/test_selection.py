from dataclasses import replace
from pathlib import Path

import pytest

import upheld
from upheld.errors import UsageProblem
from upheld.protocol.manifest import load
from upheld.spec import catalogue
from upheld.spec.depths import Share
from upheld.spec.selection import (
    ONE_PROGRAM_TAG,
    Request,
    chooser,
    chosen_rows,
    demand_specs,
    newer_rows,
    promised,
    rows,
    rows_of_the_mutant,
)

FOUND = catalogue.load()
PLAIN = load("plain")
PROMISED = {row.id: row for row in promised(FOUND, PLAIN)}


def chosen(request: Request) -> set[str]:
    """Return the rows of plain that a request chooses."""
    return chosen_rows(request, FOUND, [PLAIN])["plain"]


def test_core_is_what_is_judged_unless_something_else_is_asked_for() -> None:
    """Without a word, the rows of quick and core are chosen, and no others."""
    assert chosen(Request()) == {
        row.id for row in PROMISED.values() if row.depth in {"quick", "core"}
    }
    assert chosen(Request(depth="quick")) == {
        row.id for row in PROMISED.values() if row.depth == "quick"
    }
    assert chosen(Request(depth="full")) == set(PROMISED)


@pytest.mark.parametrize("request_", [Request(only="@G22"), Request(guarantees=["G22"])])
def test_who_names_what_to_judge_gets_every_match(request_: Request) -> None:
    """Tags and guarantees choose rows at any depth.

    So a card's last line judges its row again.
    """
    assert chosen(request_) == {row for row in PROMISED if row.startswith("G22.")}


def test_a_depth_narrows_what_is_named() -> None:
    """A depth that is asked for counts beside tags and guarantees."""
    rows = chosen(Request(only="@G22", depth="core"))

    assert rows == {row for row in PROMISED if row.startswith("G22.")} & chosen(Request())
    assert rows < chosen(Request(only="@G22"))


def test_a_program_narrows_the_usual_depth() -> None:
    """A program and a mode choose rows of core, and those of scenarios on one program."""
    rows = chosen(Request(programs=["relay"], modes=["exactly_once"]))
    usual = {row for row in chosen(Request()) if "[relay-exactly_once" in row}

    assert usual < rows
    assert all("[relay-exactly_once" in row for row in rows)
    assert all(ONE_PROGRAM_TAG in FOUND.by_row[row].tags for row in rows - usual)


def test_a_program_is_chosen_before_one_is_kept() -> None:
    """A scenario that is judged on one program is judged on the one that is asked for."""
    scenario = FOUND.by_id["G24.zombie"]
    relay = "G24.zombie[relay-exactly_once]"

    assert ONE_PROGRAM_TAG in scenario.tags
    assert relay not in PROMISED
    for request in (
        Request(only="@G24.zombie", programs=["relay"]),
        Request(guarantees=["G24"], programs=["relay"]),
    ):
        assert relay in chosen(request)
    both = chosen(Request(only="@G24.zombie", programs=["relay", "ledger"]))
    assert both == {"G24.zombie[ledger-exactly_once]"}


def test_a_file_may_name_the_other_program(tmp_path: Path) -> None:
    """A report of a run with --program holds such rows."""
    row = "G24.zombie[relay-exactly_once]"
    file = tmp_path / "rows.txt"
    file.write_text(f"plain {row}\n")

    assert chosen(Request(file=file)) == {row}


def test_a_list_is_narrowed_too() -> None:
    """Rows of the catalogue are chosen by program and mode without a design."""
    by_request = Request(programs=["relay"], modes=["exactly_once"], depth="full").chooser(FOUND)

    found = {(row.program, row.mode) for row in rows(FOUND, by_request)}

    assert found == {("relay", "exactly_once")}


@pytest.mark.parametrize("guarantee", ["G26", "G42", "G45"])
def test_what_differs_by_program_is_judged_on_both(guarantee: str) -> None:
    """A relay and a ledger send, and lose their input, in ways of their own."""
    programs = {row.program for row in PROMISED.values() if row.id.startswith(f"{guarantee}.")}

    assert programs == {"relay", "ledger"}


def test_the_tag_of_a_depth_counts_per_row() -> None:
    """A tag expression sees the tags above a row's own Examples table."""
    assert chosen(Request(only="@quick")) == chosen(Request(depth="quick"))
    assert chosen(Request(only="not @full")) == chosen(Request())


def test_eight_slices_are_all_of_it() -> None:
    """Each slice adds its part of the rows that core leaves out.

    Together the slices leave none out.
    """
    slices = [chosen(Request(share=Share(number, 8))) - chosen(Request()) for number in range(1, 9)]

    assert set.union(*slices) == set(PROMISED) - chosen(Request())
    assert sum(map(len, slices)) == len(set.union(*slices))


def test_a_slice_of_nothing_left_out() -> None:
    """At full depth a slice adds nothing, which whoever asks for it does not mean."""
    with pytest.raises(UsageProblem, match="--slice adds to a depth below full"):
        chosen(Request(depth="full", share=Share(1, 8)))


def test_a_file_names_rows(tmp_path: Path) -> None:
    """A line is a design and a row of it, as in a report; blank lines are passed over."""
    row = next(iter(PROMISED))
    file = tmp_path / "rows.txt"
    file.write_text(f"plain {row}\n\n")

    assert chosen(Request(file=file)) == {row}


@pytest.mark.parametrize("text", ["plain G99.none[relay]", "spark G22", "\x00", "plain"])
def test_a_file_of_something_else(tmp_path: Path, text: str) -> None:
    """A line that is no promised row of a chosen design is named."""
    file = tmp_path / "rows.txt"
    file.write_text(f"\n{text}\n")

    with pytest.raises(UsageProblem, match="line 2 names no row"):
        chosen(Request(file=file))


@pytest.mark.parametrize("name", ["missing", "binary"])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    """It is said which, before anything is started."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")

    with pytest.raises(UsageProblem, match=f"{name} cannot be read"):
        chosen(Request(file=tmp_path / name))


def test_a_wrong_design_is_judged_on_one_row_below_full_depth() -> None:
    """The first row of core that a wrong design names catches it.

    Its control is passed. At full depth all rows that it names count.
    """
    design = load("broken/reads_uncommitted")
    assert design.sin
    core = rows_of_the_mutant(FOUND, design, "core")
    full = rows_of_the_mutant(FOUND, design)

    assert core <= full
    assert len(core) == 2
    assert design.sin.control in core
    assert core - {design.sin.control} <= chosen(Request())


@pytest.mark.parametrize(
    ("only", "says"),
    [
        ("(" * 5_000 + "G22" + ")" * 5_000, ""),
        ("(" * 5_000, "is no tag expression: "),
        ("not " * 3_000 + "G22", "nests more than 400 terms; --rows FILE takes a row a line."),
        (" or ".join(["G22"] * 2_000), "nests more than 400 terms"),
        ("G22 " * 1_000, "is no tag expression: "),
        ("x" * 20_000, "--only has more than 16384 characters"),
        ("\udcff", "nothing is tagged @"),
        ("\0", "nothing is tagged @"),
        ("\\", ""),
        ("\\q", "is no tag expression: "),
        (" or ".join(["G22"] * 300), ""),
    ],
)
def test_an_expression_that_nobody_would_write(only: str, says: str) -> None:
    """It is evaluated, or refused in one sentence."""
    said = ""
    try:
        list(rows(FOUND, chooser(FOUND, only=only)))
    except UsageProblem as problem:
        said = str(problem)

    assert bool(said) == bool(says)
    assert says in said
    assert len(said) < 600


LATER = "G2"  # whose rows came later, in the catalogue below
ROW_LATER = "G11.envelope-survives[relay-exactly_once]"


def later() -> catalogue.Catalogue:
    """Return a catalogue of which G2 and a row of G11 came with version 0.2.3."""
    guarantees = dict(FOUND.guarantees)
    guarantees[LATER] = guarantees[LATER].model_copy(update={"since": "0.2.3"})
    guarantees["G11"] = guarantees["G11"].model_copy(update={"rows_since": {ROW_LATER: "0.2.3"}})
    return replace(FOUND, guarantees=guarantees)


@pytest.mark.parametrize(
    ("spec", "has"),
    [(None, True), ("0.1", False), ("0.2.2", False), ("0.2.3", True), ("0.2", True), ("1.0", True)],
)
def test_a_pin_leaves_out_the_rows_that_came_later(spec: str | None, has: bool) -> None:
    """A version of two parts holds all that begin with them; rows left out are named."""
    found = later()
    design = PLAIN.model_copy(update={"spec": spec})
    request = Request(depth="full")

    ids = chosen_rows(request, found, [design])["plain"]
    newer = newer_rows(request, found, design)

    everything = {row.id for row in promised(FOUND, PLAIN)}
    late = {name for name in everything if name.startswith(f"{LATER}.")} | {ROW_LATER}
    assert ids == (everything if has else everything - late)
    assert newer == ([] if has else sorted(late))


def test_a_file_names_no_row_that_came_later(tmp_path: Path) -> None:
    """A design that pins an older version has not promised it."""
    file = tmp_path / "rows"
    file.write_text(f"plain {ROW_LATER}\n")
    design = PLAIN.model_copy(update={"spec": "0.1"})

    assert chosen_rows(Request(file=file), FOUND, [design]) == {"plain": {ROW_LATER}}
    with pytest.raises(UsageProblem, match="names no row that one of the designs has promised"):
        chosen_rows(Request(file=file), later(), [design])


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("0.1", None),
        ("0.1.0", None),
        ("0.1.1", f"`spec` is 0.1.1, and this is upheld {upheld.__version__}; install a newer one"),
        ("9.0", f"`spec` is 9.0, and this is upheld {upheld.__version__}; install a newer one"),
        ("0.0", "`spec` is 0.0, and no row is as old; the first version is 0.1.0."),
    ],
)
def test_a_pin_of_no_version_is_refused(spec: str, says: str | None) -> None:
    """A version that is not there yet, or never was, is no promise."""
    design = PLAIN.model_copy(update={"spec": spec})

    if says is None:
        demand_specs(FOUND, [PLAIN, design])
    else:
        with pytest.raises(UsageProblem) as refused:
            demand_specs(FOUND, [PLAIN, design])
        assert str(refused.value).startswith(f"{PLAIN.file}: ")
        assert says in str(refused.value)


def test_an_application_that_answers_for_keys_is_asked() -> None:
    """It stands for the program of these rows, and of no others of that program."""
    served = load(str(Path(__file__).parents[2] / "support" / "applications" / "served"))
    assert served.application
    silent = served.application.model_copy(update={"query": {}})
    rows = promised(FOUND, served)
    own = promised(FOUND, served.model_copy(update={"application": silent}))

    assert {row.id for row in rows} - {row.id for row in own} == {
        "G16.says-when-it-is-ready[pulse-exactly_once]",
        "G16.never-wrong[pulse-exactly_once]",
        "G53.committed-only[pulse-exactly_once]",
    }
