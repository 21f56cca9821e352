"""A misspelt name is refused with a guess, on the command line and in files."""

from pathlib import Path

import pytest

from upheld.cli import main

DESIGN = """
name = "mine"
version = "1"
command = ["true"]
programs = ["ledger"]
modes = ["exactly_once"]
"""


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("lits", "list"),
        ("--verson", "--version"),
        ("run --sped 1", "--seed"),
        ("run --depht=core", "--depth"),
        ("report . --makrdown", "--markdown"),
        ("run --depth cor", "core"),
        ("run --broker embeded", "embedded"),
        ("run --report jnit", "junit"),
        ("sweep --points tx", "txn"),
        ("sweep --disk wipd", "wiped"),
        ("sweep --program ledgr", "ledger"),
        ("sweep --mode exactly-once", "exactly_once"),
        ("run --design sparc", "spark"),
        ("run --design broken/adds_up_its_changelgo", "broken/adds_up_its_changelog"),
        ("run sparc", "spark"),
        ("list --design plian", "plain"),
        ("run --design plain --program ledgr", "ledger"),
        ("run --design plain --mode exactly-once", "exactly_once"),
        ("smoke --design plain --program rely", "relay"),
        ("run --design plain --guarantee G222", "G22"),
        ("run --design plain --only @wirre", "@wire"),
        ("run --design plain --only @G22.dies-after-a-comit", "@G22.dies-after-a-commit"),
        ("run --design plain --store rediss=x", "redis"),
        ("explain stale-overwrit", "stale-overwrite"),
    ],
)
def test_on_the_command_line(capsys: pytest.CaptureFixture[str], line: str, meant: str) -> None:
    """The exit code is 4, and the sentence asks for the nearest name."""
    try:
        code = main(line.split())
    except SystemExit as ended:
        code = int(ended.code or 0)

    assert code == 4
    assert f" Did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("toml", "meant"),
    [
        (DESIGN.replace("ledger", "ledgr"), "ledger"),
        (DESIGN.replace("exactly_once", "exactly-once"), "exactly_once"),
        (DESIGN + "capabilities = ['scael']", "scale"),
        (DESIGN + "capabilities = ['dead_letters']", "dead-letters"),
        (DESIGN + "cannot = ['name-topic']", "name-topics"),
        (DESIGN + "capabilites = ['scale']", "capabilities"),
        (DESIGN.replace("programs", "program"), "programs"),
        (DESIGN + "progress = 'groups'", "group"),
        (DESIGN + "atomic = 'shards'", "shard"),
        (DESIGN + "extends = 'plian'", "plain"),
        (DESIGN + "known_failures = 'known'", "G22.dies-after-a-commit"),
        (
            DESIGN + "[sin]\nscenarios = ['G22.dies-after-a-comit']\nanomaly = 'lost'",
            "G22.dies-after-a-commit",
        ),
        (DESIGN + "[sin]\nscenarios = ['G22']\nanomaly = 'lost'\ncontrl = 'G1'", "control"),
        (
            DESIGN + "[twin]\nrows = ['G22']\nwas = 'b'\nverdict = 'uphold'",
            "upheld",
        ),
    ],
)
def test_in_a_design(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, toml: str, meant: str
) -> None:
    """A slip in design.toml would take promises away without a word."""
    (tmp_path / "design.toml").write_text(toml)
    (tmp_path / "known").write_text("G22.dies-after-a-comit, hard, https://example.org\n")

    assert main(["run", "--design", str(tmp_path), "--broker", "embedded"]) == 4

    said = capsys.readouterr().err
    assert f" Did you mean {meant}?" in said
    assert said.count("Did you mean") == 1
    assert said.startswith("upheld: ")


def test_in_a_file_of_rows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The row is the one of that design which is most like it."""
    (tmp_path / "rows").write_text("plain G22.dies-after-a-comit[ledger-exactly_once]\n")

    assert main(["run", "--design", "plain", "--rows", str(tmp_path / "rows")]) == 4
    assert "Did you mean G22.dies-after-a-commit[ledger-exactly_once]?" in capsys.readouterr().err


def test_what_resembles_nothing_gets_no_guess(capsys: pytest.CaptureFixture[str]) -> None:
    """A wild guess would be worse than none."""
    assert main(["explain", "xyzzy"]) == 4
    assert "Did you mean" not in capsys.readouterr().err
