"""The documents and the command line agree.

Every command and option that is written exists, and every command is written.
"""

import argparse
import re
from pathlib import Path

import pytest
from documents import fences

from upheld import report
from upheld.cli import EXIT_CODES, INTERRUPTED, parser
from upheld.errors import MachineProblem, UsageProblem
from upheld.families import Family
from upheld.history import events
from upheld.history.marks import Happening
from upheld.programs import PROGRAMS
from upheld.protocol.capabilities import Capability
from upheld.protocol.limits import Limit
from upheld.protocol.manifest import load, shipped
from upheld.protocol.messages import REPLIES_TO, REPLY, REQUEST, Message
from upheld.report import RowResult, Summary
from upheld.report.formats import FORMATS
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
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
ROW = re.compile(r"^\| (\d+) \| (.+) \|$", re.MULTILINE)


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


def test_every_command_is_written() -> None:
    """In the README's table, where people look for it, with its own purpose in it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert {name for name in commands() if f"| `upheld {name}" not in readme} == set()


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
        if not re.search(r"\b(pip|docker|tox|pytest|git|protoc|spark-submit|spark-class)\b", line)
        for option in OPTION.findall(line)
    }

    assert written - known == set()


def test_the_table_of_exit_codes_is_the_code() -> None:
    """Each exit code has one meaning, the same in --help and in the document.

    Every code that is used is in the table.
    """
    document = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
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
    page = (ROOT / "docs" / "adapter.md").read_text(encoding="utf-8")
    _, _, section = page.partition("## Capabilities\n")
    table, _, _ = section.partition("\n## ")

    assert re.findall(r"^\| `(.+)` \| (.+) \|$", table, re.MULTILINE) == [
        (capability, capability.sentence) for capability in Capability
    ]


def test_the_red_card_is_of_a_row_that_its_design_is_judged_on() -> None:
    """So a run of the wrong designs can say at depth full whether the card is true."""
    card = (ROOT / "README.md").read_text(encoding="utf-8").partition("<!-- card -->")[2]
    _, row_id, design = next(line for line in card.splitlines() if "VIOLATED" in line).split()

    assert row_id in rows_of_the_mutant(catalogue.load(), load(design))


def test_the_table_of_limits_is_the_protocol_s() -> None:
    """The page for designs lists each limit, its promise, guarantees and link."""
    page = (ROOT / "docs" / "adapter.md").read_text(encoding="utf-8")

    for limit in Limit:
        ids = ", ".join(limit.guarantees)
        row = f"| [`{limit}`]({limit.link}) | {limit.cannot} | {limit.promise} | {ids} |"
        assert row in page


def first_cells(page: str, heading: str) -> list[str]:
    """Return the code in the first cells of the table that follows a text."""
    _, _, rest = page.partition(heading)
    table = re.search(r"(?:^\|.*\n)+", rest, re.MULTILINE)
    assert table, heading
    rows = table[0].splitlines()[2:]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row.split("|")[1])]


def reports_page() -> str:
    """Return the text of the page on reports."""
    return (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")


def test_the_page_on_reports_has_every_field_of_a_row_and_of_a_summary() -> None:
    """A reader of `report.jsonl` finds each field, and no other one."""
    page = reports_page()

    assert set(first_cells(page, 'A row (`"kind"')) == set(RowResult.model_fields) - {"kind"}
    assert set(first_cells(page, 'The summary (`"kind"')) == set(Summary.model_fields) - {"kind"}
    assert f"of the summary is {report.FORMAT};" in page


def test_the_page_on_reports_has_every_event_of_a_history() -> None:
    """A reader of a history finds each kind of line."""
    kinds = {str(each.model_fields["kind"].default) for each in events.Event.__subclasses__()}

    assert set(first_cells(reports_page(), "## Histories")) == kinds


def test_the_page_on_reports_has_every_format_and_verdict() -> None:
    """The names and files are those of `--report`."""
    page = reports_page()
    rows = re.findall(r"^\| `(\w+)` \| `([\w.]+)` \|", page, re.MULTILINE)

    assert dict(rows) == {name: each.file for name, each in FORMATS.items()}
    assert set(first_cells(page, "## Verdicts")) == set(Verdict)


def test_the_page_for_designs_has_every_program() -> None:
    """Each one leads to its contract."""
    page = (ROOT / "docs" / "adapter.md").read_text(encoding="utf-8")

    named = re.findall(r"^\| \[`(\w+)`\]\(programs.md#([\w-]+)\) \|", page, re.MULTILINE)

    assert [name for name, _ in named] == list(PROGRAMS)
    assert [anchor for name, anchor in named if name not in anchor.split("-")] == []


def test_the_conversation_is_one() -> None:
    """Each line is a message of the protocol, and each answer is one that is awaited."""
    page = (ROOT / "docs" / "adapter.md").read_text(encoding="utf-8")
    (talk,) = (each for each in fences(page) if each.note == "messages")
    asked: type[Message] | None = None
    for line in talk.text.splitlines():
        if line.startswith("> "):
            asked = type(REQUEST.validate_json(line[2:]))
        else:
            assert asked
            assert type(REPLY.validate_json(line.removeprefix("< "))) in REPLIES_TO[asked]


def test_the_page_on_faults_has_every_mark_under_its_family() -> None:
    """A reader of a history finds how the fault was made that a mark is evidence of."""
    page = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n)*)", page, re.MULTILINE))
    codes = {str(each) for each in Happening}
    for family in (*Family, None):
        title = family.value.capitalize() if family else "Marks that are no faults"
        written = {word for word in re.findall(r"`([a-z-]+)`", sections[title]) if word in codes}

        assert written == {str(each) for each in Happening if each.family is family}


def test_the_number_of_wrong_designs_is_right() -> None:
    """The page on limits says how many mistakes of its own the suite finds."""
    page = (ROOT / "docs" / "what-an-upheld-does-not-prove.md").read_text(encoding="utf-8")
    wrong = [name for name in shipped() if name.startswith("broken/")]

    assert f"has {len(wrong)} wrong designs of its own today" in " ".join(page.split())
