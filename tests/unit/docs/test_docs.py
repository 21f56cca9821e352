"""The documents and the command line agree.

Every command and option that is written exists, and every command is written.
"""

import argparse
import re
from pathlib import Path

import pytest

from upheld import report
from upheld.cli import EXIT_CODES, INTERRUPTED, parser
from upheld.errors import MachineProblem, UsageProblem
from upheld.protocol.capabilities import Capability
from upheld.protocol.limits import Limit
from upheld.protocol.manifest import load
from upheld.report import RowResult
from upheld.spec import catalogue
from upheld.spec.selection import rows_of_the_mutant
from upheld.verdicts import Verdict

ROOT = Path(__file__).parents[3]
DOCUMENTS = sorted(
    [
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "adr").glob("*.md"),
    ],
)
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
CALL = re.compile(r"(?:\bupheld|bootstrap\.py)[ \t]+(?P<command>[a-z]+)(?P<rest>[^`\n#]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
ROW = re.compile(r"^\| (\d+) \| (.+) \|$", re.MULTILINE)
OTHER_PROGRAMS = {"tox"}  # bootstrap.py passes these on


def commands() -> dict[str, argparse.ArgumentParser]:
    """Return every command with its parser."""
    (subparsers,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(subparsers.choices)


def options_of(*parsers: argparse.ArgumentParser) -> set[str]:
    """Return every option that these parsers know."""
    return {
        option for one in parsers for action in one._actions for option in action.option_strings
    }


def code_in(document: Path) -> list[str]:
    """Return the document's code, in blocks and in lines."""
    return CODE.findall(document.read_text(encoding="utf-8"))


def calls() -> list[tuple[str, str, str]]:
    """Return document, command and arguments of each command line in the documents."""
    return [
        (document.name, call["command"], call["rest"])
        for document in DOCUMENTS
        for code in code_in(document)
        for call in CALL.finditer(code)
    ]


def test_every_command_that_is_written_exists() -> None:
    """A reader types it and it runs."""
    written = {(document, command) for document, command, _ in calls()}

    assert len(written) >= len(commands())
    assert {(d, c) for d, c in written if c not in commands() and c not in OTHER_PROGRAMS} == set()


def test_every_command_is_written() -> None:
    """In the README's table, where people look for it, with its own purpose in it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert {name for name in commands() if f"| `upheld {name}" not in readme} == set()


def test_every_option_in_a_command_line_is_an_option_of_that_command() -> None:
    """`upheld smoke --seed` would be refused, so no document shows it."""
    wrong = [
        (document, command, option)
        for document, command, rest in calls()
        if command in commands()
        for option in OPTION.findall(rest)
        if option not in options_of(commands()[command])
    ]

    assert wrong == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_option_that_is_written_exists(document: Path) -> None:
    """Each option that stands alone belongs to some command of upheld.

    Options of other programs stand in lines that name the program.
    """
    known = options_of(parser(), *commands().values())
    written = {
        option
        for code in code_in(document)
        for line in code.splitlines()
        if not re.search(r"\b(pip|docker|tox|pytest|git|spark-submit|spark-class)\b", line)
        for option in OPTION.findall(line)
    }

    assert written - known == set()


def test_the_table_of_exit_codes_is_the_code() -> None:
    """Each exit code has one meaning, the same in --help and in the document.

    Every code that is used is in the table.
    """
    document = (ROOT / "docs" / "gate-your-own-design.md").read_text(encoding="utf-8")
    table = {int(code): meaning.replace("`", "") for code, meaning in ROW.findall(document)}

    assert table == EXIT_CODES
    assert all(meaning in commands()["run"].format_help() for meaning in table.values())
    assert (MachineProblem.exit_code, UsageProblem.exit_code, INTERRUPTED) == (3, 4, 130)


@pytest.mark.parametrize(
    ("verdicts", "promised", "code"),
    [
        ([Verdict.UPHELD, Verdict.UNSUPPORTED], 2, 0),
        ([Verdict.UPHELD, Verdict.VIOLATED, Verdict.HARNESS_ERROR], 3, 1),
        ([Verdict.UPHELD, Verdict.INCONCLUSIVE], 2, 2),
        ([Verdict.UPHELD], 2, 2),
        ([Verdict.INCONCLUSIVE, Verdict.HARNESS_ERROR], 2, 3),
        ([], 2, 5),
        ([Verdict.UNSUPPORTED], 1, 5),
    ],
)
def test_a_run_exits_as_the_table_says(verdicts: list[Verdict], promised: int, code: int) -> None:
    """The worst verdict decides, and fewer rows than promised are no success."""
    rows = [
        RowResult(design="d", id="G1.x", guarantee="G1", name="n", verdict=v, seconds=1)
        for v in verdicts
    ]

    assert report.exit_code(rows, promised) == code
    assert code in EXIT_CODES


def test_every_option_of_every_command_is_explained() -> None:
    """--help says what each is for, in a sentence of its own."""
    silent = [
        (name, action.dest)
        for name, command in commands().items()
        for action in command._actions
        if not action.help or len(action.help) < 8
    ]

    assert silent == []


def test_the_table_of_capabilities_is_the_protocol_s() -> None:
    """The page for designs lists each capability with its sentence in the code."""
    page = (ROOT / "docs" / "gate-your-own-design.md").read_text(encoding="utf-8")

    assert re.findall(r"^   \| `(.+)` \| (.+) \|$", page, re.MULTILINE) == [
        (capability, capability.sentence) for capability in Capability
    ]


def test_the_red_card_is_of_a_row_that_its_design_is_judged_on() -> None:
    """So a run of the wrong designs can say at depth full whether the card is true."""
    card = (ROOT / "README.md").read_text(encoding="utf-8").partition("<!-- card -->")[2]
    _, row_id, design = next(line for line in card.splitlines() if "VIOLATED" in line).split()

    assert row_id in rows_of_the_mutant(catalogue.load(), load(design))


def test_the_table_of_limits_is_the_protocol_s() -> None:
    """The page for designs lists each limit, its promise, guarantees and link."""
    page = (ROOT / "docs" / "gate-your-own-design.md").read_text(encoding="utf-8")

    for limit in Limit:
        ids = ", ".join(limit.guarantees)
        row = f"| [`{limit}`]({limit.link}) | {limit.cannot} | {limit.promise} | {ids} |"
        assert row in page
