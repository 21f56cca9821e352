"""Commands, settings and outputs in the documents are those of the program.

Each command is parsed by the parser of the command line. Some are run, without a broker.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import documents
import pytest
from documents import DOCUMENTS, ROOT, Fence

from upheld.cli import main, parser
from upheld.protocol.manifest import HIDDEN, INHERITED, Manifest, load
from upheld.spec import catalogue
from upheld.spec.gherkin import parsed

# A mention in a sentence may leave out what the command asks for.
UNFINISHED = re.compile(
    r"the following arguments are required|expected (one|at least one) argument"
)
PROMPT = "prints: "
ID = re.compile(r"(?<![\w.-])@?((?:G\d+|SLA)(?:\.[a-z][a-z-]+)?(?:\[[a-z_-]+\])?)(?![\w-])")
VARIABLE = re.compile(r"\bUPHELD_[A-Z_]*[A-Z]\b")
# Ids that are reserved, or that were proposed and refused, stand in decisions alone.
RECORDS = ("docs/adr", "docs/notebooks", "CHANGELOG.md")
SETTING = re.compile(r"^# (\w+ = )", re.MULTILINE)
NAME_CHARS = 100
KNOWN_FAILURE = "G1.replayed-after-a-crash[ledger-exactly_once], a reason, a link\n"


def texts() -> Iterator[tuple[str, str]]:
    """Go through the name and the text of each document."""
    for document in DOCUMENTS:
        yield documents.named(document), document.read_text(encoding="utf-8")


def blocks(*languages: str) -> Iterator[tuple[str, Fence]]:
    """Go through the blocks of code in these languages, each with its document."""
    for name, text in texts():
        for fence in documents.fences(text):
            if fence.language in languages:
                yield name, fence


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the sentence that refuses arguments; empty if they are accepted."""
    try:
        parser().parse_args(arguments)
    except SystemExit as ended:
        said = capsys.readouterr().err.strip()
        return said if ended.code else ""
    return ""


COMMANDS = [
    pytest.param(arguments, id=f"{name}: {shlex.join(arguments)}"[:NAME_CHARS])
    for name, fence in blocks("sh", "yaml")
    for arguments in documents.written_commands(fence)
]
MENTIONS = {
    span.replace("…", ""): name
    for name, text in texts()
    if not name.startswith(RECORDS)
    for span in documents.spans(text)
    if span.startswith("upheld ")
}
PRINTED = [
    pytest.param(fence.note.removeprefix(PROMPT), fence.text, id=f"{name}: {fence.note}")
    for name, fence in blocks("text", "")
    if fence.note.startswith(PROMPT)
]


@pytest.mark.parametrize("arguments", COMMANDS)
def test_every_command_of_a_block_is_accepted(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader copies it, and the command line understands it."""
    assert refusal(arguments, capsys) == ""


@pytest.mark.parametrize("mention", sorted(MENTIONS))
def test_every_command_of_a_sentence_is_known(
    mention: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its options and values are the command's, and it may leave out arguments."""
    for arguments in documents.calls(mention):
        said = refusal(arguments, capsys)
        assert not said or UNFINISHED.search(said), f"{MENTIONS[mention]}: {said}"


@pytest.mark.parametrize(("line", "shown"), PRINTED)
def test_what_a_document_shows_is_printed(
    line: str,
    shown: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command of the note is run in a folder without a run, and in 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    (arguments,) = documents.calls(line)

    main(arguments)

    printed = capsys.readouterr().out
    assert documents.is_shown(shown, printed), printed


def own_ids() -> Iterator[str]:
    """Go through the ids of scenarios and rows of features that documents show."""
    for name, fence in blocks("gherkin"):
        for scenario in parsed(fence.text, name, Path(name)).scenarios:
            yield from (scenario.id, *(row.id for row in scenario.rows))


def test_every_id_that_is_written_is_of_the_catalogue() -> None:
    """A reader who asks for it with `--only` finds it."""
    known = catalogue.load()
    ids = {*known.guarantees, *known.by_id, *known.by_row, *own_ids()}
    unknown = {
        (name, found)
        for name, text in texts()
        if not name.startswith(RECORDS)
        for found in ID.findall(text)
        if found not in ids
    }

    assert unknown == set()


def test_every_variable_that_is_written_is_read() -> None:
    """A variable of the environment that nothing reads would change nothing."""
    folders = ("upheld", "steps", "tests", "tools", "bench")
    code = "".join(
        path.read_text(encoding="utf-8")
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    )
    written = {(name, found) for name, text in texts() for found in VARIABLE.findall(text)}

    assert written
    assert {(name, found) for name, found in written if found not in code} == set()


def test_the_example_of_a_manifest_is_one(tmp_path: Path) -> None:
    """It is read with all settings on, and has each setting of a design."""
    examples = [
        fence.text
        for _, fence in blocks("toml")
        if "\ncommand = " in fence.text and "[process." not in fence.text
    ]
    assert examples
    for number, example in enumerate(examples):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "known-failures.txt").write_text(
            "G1.replayed-after-a-crash[relay-exactly_once], a reason, a link\n"
        )
        text = SETTING.sub(r"\1", example)
        (folder / "design.toml").write_text(text)
        load(str(folder))
        written = set(re.findall(r"^(\w+) = ", text, re.MULTILINE))

        assert written == {*Manifest.model_fields, "extends"} - {*HIDDEN, "sin", "twin"}
        assert set(INHERITED) <= written


def test_the_example_of_an_application_is_the_one_that_ships() -> None:
    """A reader copies what was judged."""
    _, *shipped = (ROOT / "examples" / "orders" / "design.toml").read_text().splitlines()
    examples = [fence.text.splitlines() for _, fence in blocks("toml") if "[input." in fence.text]

    assert shipped in examples


def test_every_link_leads_somewhere() -> None:
    """Each file is there, and each heading in it."""
    broken = [
        (documents.named(document), link)
        for document in DOCUMENTS
        for link in documents.links(document.read_text(encoding="utf-8"))
        if not re.match(r"[a-z]+:", link) and not _is_there(document, link)
    ]

    assert broken == []


def _is_there(document: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (document.parent / name).resolve() if name else document
    if not target.exists():
        return False
    return not anchor or anchor in documents.anchors(target.read_text(encoding="utf-8"))
