import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[3] / "tools" / "docstrings.py"
GOOD = '''"""Judge a history."""


def judge(path: str) -> int:
    """Return the verdict's exit code.

    The file is read once. A claim that `x is y and z or a and b and c and d and e and f and g and
    h and i and j` says is one word. Its parts:

    - a part that has a good many words of its own, which nobody adds to the words of the others,
    - another part of it.

    | a | table | that | is | set | in | columns | and | is | no | sentence | at | all | of | 25 |

    Args:
        path: Where the history is.
    """


def _private() -> None:
    """What is private is its author's own affair, and as long as this sentence goes on and on
    it shows that nobody looks."""
'''


def complaints(folder: Path, text: str) -> tuple[int, str]:
    """Return the exit code and the output for a module with this text."""
    module = folder / "module.py"
    module.write_text(text)
    command = [sys.executable, TOOL, module]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def test_a_readable_docstring_passes(tmp_path: Path) -> None:
    """Code, items, tables and private names are not held against a module."""
    assert complaints(tmp_path, GOOD) == (0, "")


@pytest.mark.parametrize(
    ("docstring", "said"),
    [
        (f"Return {'much ' * 16}more.", "the first line has 92 characters"),
        ("Return the verdict that\nthe run gave.", "the first line does not end its sentence"),
        (f"Return it.\n\nIt is {'very ' * 24}good.", "a sentence of 27 words"),
        ("Who hears nothing goes on.", "a sentence without a noun as subject"),
        ("Return it.\n\nOne that is late is left out.", "a sentence without a noun as subject"),
    ],
)
def test_a_docstring_that_is_hard_to_read_is_refused(
    docstring: str, said: str, tmp_path: Path
) -> None:
    """Place and rule are named, and the exit code fails the lint."""
    code, output = complaints(tmp_path, f'"""A module."""\n\n\nclass A:\n    """{docstring}"""\n')

    assert code == 1
    assert f"module.py:5: {said}" in output


def test_what_a_public_class_offers_is_read(tmp_path: Path) -> None:
    """Methods are held to the rules, functions within functions are not."""
    text = (
        "class A:\n    def f(self):\n        '''Who.'''\n"
        "        def g():\n            '''What.'''\n"
    )
    _, output = complaints(tmp_path, text)

    assert output.count("\n") == 1
    assert "module.py:3:" in output
