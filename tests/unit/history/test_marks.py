import ast
from pathlib import Path

import pytest

import upheld
from upheld.families import Family
from upheld.history.events import EVENT, Mark

PACKAGE = Path(upheld.__file__).parent
NO_FAULTS = {  # marks of what had to happen besides: their texts
    "the input is shared",
    "refused to start",
    "stopped in the middle of its input",
    "recovered",
    "COLD",
    "what",  # a race in the input, by what was written
}


def marks() -> list[tuple[str, str, bool]]:
    """Each place that marks something: where, what, and whether it says a family."""
    found = []
    files = [*PACKAGE.rglob("*.py"), *(PACKAGE / "steps").glob("*.py")]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "mark"
            ):
                if not node.args or ast.unparse(node.func.value) in {"pytest", "item"}:
                    continue
                text = ast.unparse(node.args[0]).strip("'")
                is_coded = len(node.args) > 1 and ast.unparse(node.args[1]).startswith("Family.")
                found.append((f"{file.name}:{node.lineno}", text, is_coded))
    return found


def test_every_fault_has_a_code() -> None:
    """A mark says the family of the fault that it is evidence of, or is known to be none."""
    found = marks()

    assert len(found) > 25
    assert [
        (where, text) for where, text, is_coded in found if not is_coded and text not in NO_FAULTS
    ] == []
    assert {text for _, text, is_coded in found if not is_coded} == NO_FAULTS


@pytest.mark.parametrize("line", ['{"kind":"mark","at_ms":1,"fault":"wiped","evidence":{}}'])
def test_an_older_mark_is_read(line: str) -> None:
    """A history that was recorded before marks had codes stays readable."""
    assert EVENT.validate_json(line) == Mark(at_ms=1, fault="wiped", evidence={})


def test_a_code_is_a_word() -> None:
    """A history holds the code as text."""
    mark = Mark(at_ms=1, code=Family.DISK, fault="wiped", evidence={})

    assert (
        mark.model_dump_json()
        == '{"kind":"mark","at_ms":1,"code":"disk","fault":"wiped","evidence":{}}'
    )
    assert EVENT.validate_json(mark.model_dump_json()) == mark
