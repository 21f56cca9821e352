"""Everything that is printed reaches the terminal as text, whoever prints it."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

from hostile import HOSTILE, is_plain
from rich.console import Console

import upheld
from upheld.ui.console import PlainConsole
from upheld.ui.streams import Outlet, Printed

PACKAGE = Path(upheld.__file__).parent
# What prints nothing of a run: designs, and steps that no test of this is about.
BESIDE = ("impl", "features")
# Everything that a command may print with, and a console in between.
COMMAND = """
import json, sys
from upheld.ui.console import console
from upheld.ui.streams import lasting
texts = json.load(sys.stdin)
with lasting():
    for text in texts:
        print(text)
        console().print(text, style="red")
        print(text, file=sys.stderr)
        sys.stderr.write(text)
        sys.stdout.writelines([text])
"""


def written(pipe: int) -> str:
    """Return what a pipe holds."""
    return os.read(pipe, 1 << 16).decode()


def test_each_way_to_print() -> None:
    """A print, a write and a console show the same characters."""
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND],
        env={**os.environ, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)},
        input=json.dumps([text[:2000] for text in HOSTILE.values()]).encode(),
        capture_output=True,
        timeout=60,
        check=True,
    )

    assert is_plain(ended.stdout.decode())
    assert is_plain(ended.stderr.decode())
    assert ended.stdout


def test_a_console_keeps_its_colours_and_its_place() -> None:
    """Text that was printed earlier stands earlier, though one stream is buffered."""
    source, sink = os.pipe()
    stream = Printed(Outlet(sink), None)
    print("\x1b[2J first", file=stream)
    Console(file=stream, force_terminal=True, color_system="standard").print("second", style="red")
    print("third", file=stream, flush=True)
    os.close(sink)

    said = written(source)
    os.close(source)

    assert said == "\\x1b[2J first\n\x1b[31msecond\x1b[0m\nthird\n"


def test_a_plain_console_on_it_guards_its_own_texts() -> None:
    """So nothing of a design moves the cursor on this way either."""
    source, sink = os.pipe()
    stream = Printed(Outlet(sink), None)
    PlainConsole(file=stream).print("\x1b[2J")
    stream.flush()
    os.close(sink)

    assert written(source) == "\\x1b[2J\n"
    os.close(source)


def test_nothing_goes_around_the_streams() -> None:
    """A print names no file but standard error.

    No call writes to a descriptor of a terminal.
    """
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] in BESIDE:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            files = [ast.unparse(each.value) for each in node.keywords if each.arg == "file"]
            is_print = called == "print" and files not in ([], ["sys.stderr"], ["self._out"])
            is_write = called == "os.write" and ast.unparse(node.args[0]) in {"1", "2"}
            if is_print or is_write or "__stdout__" in called or "__stderr__" in called:
                found.append(f"{path.name}:{node.lineno}")

    assert found == []
