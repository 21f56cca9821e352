"""Write into docs/ci.md the files that it shows whole.

    python tools/includes.py

A file stands between `<!-- NAME -->` and `<!-- /NAME -->`, as a block of code.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pages import Part

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "ci.md"
_MARK: Final = re.compile(r"^<!-- (?P<name>[\w.][\w./-]*) -->$", re.MULTILINE)


def names(page: Path = PAGE) -> list[str]:
    """Return the files that a page shows, in its order."""
    return _MARK.findall(page.read_text(encoding="utf-8"))


def shown(name: str) -> tuple[Part, str]:
    """Return the part of the page for a file, and what has to stand there."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return Part(f"<!-- {name} -->\n", f"<!-- /{name} -->"), f"```yaml\n{text}```\n"


def outdated(page: Path = PAGE) -> Iterator[str]:
    """Go through the files that a page shows otherwise than they are."""
    for name in names(page):
        part, text = shown(name)
        if part.of(page) != text:
            yield name


def main() -> int:
    """Write each file that is outdated into the page; return 0."""
    argparse.ArgumentParser(description=str(__doc__).partition("\n")[0]).parse_args()
    for name in outdated():
        part, text = shown(name)
        part.put(PAGE, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
