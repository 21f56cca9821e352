"""The design that `upheld new` writes, to begin with.

It is complete, short enough to be read at once, right in both modes, and passes `smoke`.
"""

import re
from pathlib import Path

from upheld.errors import UsageProblem
from upheld.protocol.manifest import FILE_NAME

_STARTER = Path(__file__).parent / "starter"
_FILES = (FILE_NAME, "relay.py")


def new(directory: Path) -> list[Path]:
    """Write a design named like its directory, and return the files.

    Raises:
        UsageProblem: The directory is not empty, or cannot be written.
    """
    directory = directory.expanduser().absolute()
    name = re.sub(r"[^a-z0-9._-]+", "-", directory.name.lower()).strip("-.") or "mine"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UsageProblem(f"{directory} is not empty; name a new directory.")
        for file in _FILES:
            text = (_STARTER / file).read_text(encoding="utf-8").replace('"starter"', f'"{name}"')
            (directory / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageProblem(
            f"{directory} cannot be written: {error.strerror}; name a new directory."
        ) from None
    return [directory / file for file in _FILES]
