import ast
from pathlib import Path

import pytest

import upheld
from upheld.families import Family
from upheld.history.events import EVENT, Ends, Mark
from upheld.history.marks import Happening, Look, happening_of

PACKAGE = Path(upheld.__file__).parent
FILES = [*PACKAGE.rglob("*.py"), *(PACKAGE / "steps").glob("*.py")]
# What takes its code from a table, or from the moment at which an instance is struck.
NAMES = {"happening", "moment.happening", "strike.happening", "DISTURBED[how]"}


def marks() -> list[tuple[str, str]]:
    """Return each place that marks something, and the code that it says."""
    found = []
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "mark"
                and node.args
                and ast.unparse(node.func.value) not in {"pytest", "item", "asked"}
            ):
                found.append((f"{file.name}:{node.lineno}", ast.unparse(node.args[0])))
    return found


def test_every_mark_says_a_code() -> None:
    """A mark is made with a code of the table, never with a text alone."""
    found = marks()

    assert len(found) > 25
    assert [
        (where, code)
        for where, code in found
        if not code.startswith("Happening.") and code not in NAMES
    ] == []


def test_every_code_is_in_use() -> None:
    """Nothing stands in the table that no part of the harness marks."""
    harness = "".join(file.read_text() for file in FILES)

    assert [each.name for each in Happening if f"Happening.{each.name}" not in harness] == []


@pytest.mark.parametrize("happening", Happening)
def test_an_older_mark_is_read_by_its_text(happening: Happening) -> None:
    """A mark that was recorded before there were codes gives its code by its text."""
    words = {"which": "another worker", "api": "EndTxn", "side": "after", "request": "EndTxn"}
    words |= {"timeout": "session timeout", "asked": "45000", "given": "10000"}
    words |= {"setting": "the mode", "value": "at_least_once"}
    text = happening.text.format(**words)

    assert happening_of(text) is happening
    assert Mark(at_ms=1, fault=text, evidence={}).happening is happening


@pytest.mark.parametrize("look", Look)
def test_older_ends_are_read_by_their_reason(look: Look) -> None:
    """Ends that were recorded before there were codes have the code of their reason."""
    line = (
        '{"kind":"ends","at_ms":1,"application":"a",'
        f'"reason":"{look.text}","last_stable":{{}},"high_watermark":{{}}}}'
    )
    ends = EVENT.validate_json(line)

    assert isinstance(ends, Ends)
    assert ends.look is look


def test_an_unknown_text_has_no_code() -> None:
    """A mark of another version stays readable."""
    line = '{"kind":"mark","at_ms":1,"fault":"made up","evidence":{}}'
    mark = EVENT.validate_json(line)

    assert isinstance(mark, Mark)
    assert mark.happening is None


def test_codes_are_words() -> None:
    """A history holds the codes as text, and is read as it was written."""
    wiped = Happening.DISK_WIPED
    mark = Mark(at_ms=1, code=Family.DISK, happening=wiped, fault=wiped.text, evidence={})

    assert mark.model_dump_json() == (
        '{"kind":"mark","at_ms":1,"code":"disk","happening":"disk-wiped","fault":"wiped",'
        '"evidence":{},"logs":{}}'
    )
    assert EVENT.validate_json(mark.model_dump_json()) == mark
