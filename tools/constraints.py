"""Write the constraints files: every package to install, with its hashes.

    python tools/constraints.py

It needs uv, of the extra `dev`. `constraints.txt` holds what every install needs, and
`constraints-EXTRA.txt` what an extra adds to it. The versions suit each other and every Python
that pyproject.toml supports. A package has the hashes of all of its files, for every machine.
No file names an index, so each machine keeps its own.
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())
UNLOCKED: Final = {"fuzz"}  # no command and no test of ours installs it
EXTRAS: Final = tuple(
    extra for extra in PROJECT["project"]["optional-dependencies"] if extra not in UNLOCKED
)
UV: Final = ("uv", "pip", "compile", "pyproject.toml", "-", "--no-config", "--quiet")
PINS: Final = (
    "--universal",
    "--generate-hashes",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
    "--no-emit-find-links",
)
HEAD: Final = """\
# Made by `python tools/constraints.py`: {what}. Install with
#     python3 -m pip install --require-hashes {files}
"""

Blocks = dict[str, list[str]]  # a pinned requirement -> its lines, with the hashes


def blocks(text: str) -> Blocks:
    """Return the requirements of a file, each with the indented lines after it."""
    found: Blocks = {}
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith((" ", "#")):
            lines = found.setdefault(line.removesuffix("\\").strip(), [])
        if not line.startswith("#"):
            lines.append(line)
    return found


def compiled(extras: tuple[str, ...], within: Path | None = None) -> Blocks:
    """Return the packages of these extras, within another file if it is given."""
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    chosen = [word for extra in extras for word in ("--extra", extra)]
    if within:
        chosen += ["--constraint", str(within)]
    made = subprocess.run(
        [*UV, *PINS, "--python-version", oldest, *chosen],
        input="\n".join(PROJECT["build-system"]["requires"]),  # nothing is built without them
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return blocks(made.stdout)


def write(path: Path, head: str, found: Blocks) -> None:
    """Write a constraints file."""
    lines = [line for block in found.values() for line in block]
    path.write_text(head + "\n".join(lines) + "\n")


def main() -> int:
    """Write a file for every install and one for each extra; return 0."""
    argparse.ArgumentParser(description=str(__doc__).partition("\n")[0]).parse_args()
    every = compiled(EXTRAS)
    with tempfile.TemporaryDirectory() as scratch:
        pinned = Path(scratch) / "pinned.txt"
        pinned.write_text("\n".join(every))
        base = compiled((), pinned)
        added = {extra: compiled((extra,), pinned) for extra in EXTRAS}
    files = "-r constraints.txt"
    write(ROOT / "constraints.txt", HEAD.format(what="what every install needs", files=files), base)
    for extra, found in added.items():
        both = f"{files} -r constraints-{extra}.txt"
        head = HEAD.format(what=f"what the extra `{extra}` adds", files=both)
        own = {name: lines for name, lines in found.items() if name not in base}
        write(ROOT / f"constraints-{extra}.txt", head, own)
    return 0


if __name__ == "__main__":
    sys.exit(main())
