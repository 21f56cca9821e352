"""The wrong design of a twin: a copy that differs in one line.

The line stands in the twin's `[twin.line]`, so it is committed before any run judges it.
"""

from collections.abc import Iterator
from pathlib import Path

from upheld.protocol.manifest import WrongLine

FILES = ("__main__.py", "design.toml")


def make_wrong_design(twin: Path, line: WrongLine, folder: Path) -> None:
    """Copy a twin's files into a new folder, with the wrong line for the right one."""
    folder.mkdir(parents=True)
    for name in FILES:
        text = (twin / name).read_text()
        (folder / name).write_text("".join(_changed(text.splitlines(keepends=True), line)))


def _changed(lines: list[str], line: WrongLine) -> Iterator[str]:
    """Change each line that is the right one; leave it out if the wrong design lacks it."""
    for each in lines:
        if each.strip() != line.right:
            yield each
        elif line.wrong:
            yield each.replace(line.right, line.wrong)
