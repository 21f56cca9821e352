"""`upheld list` shows guarantees by family, rows, and what a design has promised."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reports import summary

from upheld.cli import main
from upheld.report import RowResult, Writer
from upheld.spec import catalogue
from upheld.verdicts import Verdict

LIMITED = """
name = "mine"
version = "1"
command = ["true"]
programs = ["ledger"]
modes = ["exactly_once"]
cannot = ["follow-new-partitions"]
"""
ROW = "G57.torn-checkpoint[ledger-exactly_once]"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where a design is, and no run has been."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "design.toml").write_text(LIMITED)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what `list` prints."""
    assert main(["list", *arguments]) == 0
    return capsys.readouterr().out


def a_run(designs: dict[str, Verdict], reason: str = "") -> None:
    """Write the report of a run of one row, where a run would."""
    folder = Path("upheld-out") / "latest"
    folder.mkdir(parents=True)
    writer = Writer(folder)
    for name, verdict in designs.items():
        writer.write(
            RowResult(
                design=name,
                id="G1.replayed-after-a-crash[ledger-exactly_once]",
                guarantee="G1",
                name="a claim",
                verdict=verdict,
                reason=reason,
                seconds=1,
            )
        )
    writer.write(summary(ended="2026-01-02T03:04:05+00:00"))
    writer.close()


def test_each_guarantee_is_a_line_below_its_family(capsys: pytest.CaptureFixture[str]) -> None:
    """The line has the id, the number of rows and the whole promise."""
    found = catalogue.load()
    lines = said(capsys).splitlines()

    families = [line for line in lines if line.partition(":")[0] in {"replay", "inputs and disks"}]
    assert len(families) == 2
    for guarantee in found.guarantees.values():
        (line,) = (line for line in lines if line.startswith(f"{guarantee.id} "))
        rows = [row for s in found.scenarios if s.guarantee == guarantee.id for row in s.rows]
        if all(scenario.is_usual for scenario in found.scenarios if scenario.id):
            assert line.split()[1] == str(len(rows))
        assert line.endswith(guarantee.promise)


def test_without_a_run_there_is_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is made up."""
    assert "last run" not in said(capsys)


def test_the_verdicts_are_those_of_the_last_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Each design that it judged has a column, and what it left out a dash."""
    a_run({"one": Verdict.VIOLATED, "two": Verdict.UPHELD})

    lines = said(capsys).splitlines()

    assert "last run of one" in lines[0]
    (line,) = (line for line in lines if line.startswith("G1 "))
    assert line.split()[:6] == ["G1", "2", "violated", "1/1", "upheld", "1/1"]
    (line,) = (line for line in lines if line.startswith("G2 "))
    assert line.split()[2:4] == ["-", "-"]
    assert lines[-1].startswith("the last run ended 2026-01-02T03:04:05+00:00: upheld-out/latest")


def test_many_designs_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """A run of all wrong designs would fill the screen."""
    a_run({f"d{number}": Verdict.UPHELD for number in range(6)})

    text = said(capsys)

    assert "last run of d3" in text
    assert "last run of d4" not in text
    assert "2 more designs are in it, which --design names" in text


def test_a_run_that_is_cut_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A run under way has no verdicts yet, which is no error of a list."""
    a_run({"one": Verdict.UPHELD})
    report = Path("upheld-out/latest/report.jsonl")
    report.write_text(report.read_text().splitlines()[0] + "\n")

    assert "no verdict of the last run: upheld-out/latest/report.jsonl is cut" in said(capsys)


def test_a_design_says_what_is_unsupported_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    """Each row has a reason of the manifest, and what is not promised has one too."""
    text = said(capsys, "--design", ".")

    assert "rows of mine" in text.splitlines()[0]
    assert "unsupported, since mine runs as one instance (capability scale): G" in text
    assert "unsupported, since mine cannot read partitions that its input gets" in text
    (line,) = (line for line in text.splitlines() if line.startswith("G28 "))
    assert " unsupported " in line
    (line,) = (each for each in text.splitlines() if "has no program pulse:" in each)
    assert "G13" in line


def test_a_design_says_what_the_last_run_found(capsys: pytest.CaptureFixture[str]) -> None:
    """A lack of the machine is known by a run alone."""
    a_run({"mine": Verdict.UNSUPPORTED, "yours": Verdict.UPHELD}, "no \x1b room")

    text = said(capsys, "--design", ".")

    assert "unsupported in the last run, since no \\x1b room: G1.replayed" in text
    assert "last run of mine" in text
    assert "yours" not in text.splitlines()[0]


def test_rows_are_listed_if_they_are_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A file narrows them to those that it names."""
    text = said(capsys, "--rows")

    assert "quick G1.replayed-after-a-crash[ledger-exactly_once]" in text
    (tmp_path / "rows").write_text("mine G1.replayed-after-a-crash[ledger-exactly_once]\n")
    text = said(capsys, "--design", ".", "--rows", "rows")
    assert [line.split()[1] for line in text.splitlines() if "[" in line] == [
        "G1.replayed-after-a-crash[ledger-exactly_once]"
    ]


def test_a_choice_narrows_the_guarantees(capsys: pytest.CaptureFixture[str]) -> None:
    """A family without a chosen row is left out."""
    lines = said(capsys, "--only", "@G22 or @G23").splitlines()

    assert [line.split()[0] for line in lines[1:4]] == ["transactions:", "G22", "G23"]
    assert "replay: " not in "\n".join(lines)
    lines = said(capsys, "--guarantee", "G17", "--program", "relay").splitlines()
    assert lines[1] == "73 guarantees, 73 specified, 0 untested"


def test_json_keeps_its_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """A script that reads rows goes on; families and reasons stand beside them."""
    a_run({"mine": Verdict.VIOLATED})
    listing: dict[str, Any] = json.loads(said(capsys, "--design", ".", "--json"))

    assert {"guarantees", "scenarios", "rows", "untested", "designs"} <= set(listing)
    mine = listing["designs"]["mine"]
    assert (mine["promised"], mine["chosen"]) == (len(mine["rows"]), len(mine["rows"]))
    assert {"id", "guarantee", "scenario", "program", "mode", "depth"} <= set(listing["rows"][0])
    assert "mine runs as one instance (capability scale)" in mine["unsupported"]
    (replay,) = (each for each in listing["families"] if each["family"] == "replay")
    assert replay["guarantees"][0]["last_run"] == {"mine": {"violated": 1}}
    assert listing["last_run"]["report"] == "upheld-out/latest/report.jsonl"


PINNED = """
name = "mine"
version = "1"
command = ["true"]
programs = ["relay"]
modes = ["exactly_once"]
spec = "0.1"
"""


def test_a_list_names_the_rows_that_came_after_a_pin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are new, and not promised."""
    Path("design.toml").write_text(PINNED)
    found = catalogue.load()
    later = found.guarantees["G11"].model_copy(update={"since": "0.2.0"})
    found = replace(found, guarantees={**found.guarantees, "G11": later})
    monkeypatch.setattr(catalogue, "load", lambda: found)
    new = "G11.envelope-survives[relay-exactly_once]"

    text = said(capsys, "--design", ".")
    data = json.loads(said(capsys, "--design", ".", "--json"))["designs"]["mine"]

    assert f"new, and not judged since mine pins spec 0.1: 1 row, {new}" in text
    assert "not promised, since mine pins spec 0.1: G11" in text
    assert data["newer"] == [new]
    assert new not in data["rows"]


@pytest.mark.parametrize("command", ["list", "run"])
@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ('"9.9"', "`spec` is 9.9, and this is upheld"),
        ('"latest"', "`spec` is 'latest': string should match pattern"),
        ("0.1", "`spec` is 0.1: input should be a valid string."),
    ],
)
def test_a_pin_that_is_none_exits_4(
    capsys: pytest.CaptureFixture[str], command: str, spec: str, says: str
) -> None:
    """One sentence, before anything is started."""
    Path("design.toml").write_text(PINNED.replace('"0.1"', spec))

    assert main([command, "--design", "."]) == 4

    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


APPLICATION = """
name = "shop"
version = "1"
modes = ["exactly_once"]
shape = "map"
group = "{application_id}"
input.orders = { sample = "orders.jsonl" }
output.costs = {}
process.app.command = ["{python}", "-c", "", "{bootstrap}", "{input.orders}", "{output.costs}"]
"""


@pytest.fixture
def an_application(tmp_path: Path) -> None:
    """Describe an application without an adapter, where a design would be."""
    (tmp_path / "design.toml").write_text(APPLICATION)
    (tmp_path / "orders.jsonl").write_text('{"id": 1}\n')


@pytest.mark.usefixtures("an_application")
def test_a_row_says_what_an_application_is_judged_by(capsys: pytest.CaptureFixture[str]) -> None:
    """It is its own oracle, where its description offers what the row needs."""
    rows = {line.split()[1] for line in said(capsys, "--rows").splitlines()[:-2]}
    own = dict[str, str]()
    for line in said(capsys, "--rows", "--design", ".").splitlines():
        depth, *others = line.split()
        if depth in {"quick", "core", "full"}:
            own[others[0]] = others[1]

    assert own.keys() == rows
    assert own["G1.replayed-after-a-crash[ledger-exactly_once]"] == "itself"
    assert own["G43.made-anew[relay-exactly_once]"] == "unsupported"
    assert own["G46.set-aside[relay-exactly_once]"] == "-"
    assert own["G28.what-waits-moves-on[batcher-exactly_once]"] == "-"


@pytest.mark.usefixtures("an_application")
def test_the_rows_of_an_application_are_counted_by_its_oracle(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A program of the suite that is of another shape is no fault of it."""
    found = json.loads(said(capsys, "--json", "--design", "."))["designs"]["shop"]
    text = said(capsys, "--rows", "--design", ".")

    rows = len(found["rows"]) - sum(map(len, found["unsupported"].values()))
    assert found["oracle"] == "itself"
    assert f"shop is judged on {rows} rows of " in text
    assert text.count("with the oracle itself") == 1
    assert "not promised, since shop is no table: G32" in text
    assert "since shop runs no program of the suite, on which the promise hangs: G46" in text
    assert "since shop answers for no key of an output ([query.X] in design.toml): G16, G53" in text
    assert json.loads(said(capsys, "--json", "--design", "plain"))["designs"]["plain"][
        "oracle"
    ] == ("model")
