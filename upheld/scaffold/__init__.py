"""The design that `upheld new` writes, to begin with.

It is complete, short enough to be read at once, right in both modes, and passes `smoke`. With
`--application` it is an application without an adapter, and a sample of its input.
"""

import re
from pathlib import Path

from upheld.errors import UsageProblem
from upheld.protocol.manifest import FILE_NAME
from upheld.spec.schemas import text_of

_STARTER = Path(__file__).parent / "starter"
_FILES = (FILE_NAME, "relay.py")
_APPLICATION = Path(__file__).parent / "application"
_FILES_OF_AN_APPLICATION = (FILE_NAME, "app.py", "orders.jsonl")
_SCHEMA = "design.schema.json"  # for editors, which find it by the first line of the design.toml


def new(directory: Path, *, is_application: bool = False) -> list[Path]:
    """Write a design named like its directory, and return the files.

    Args:
        directory: A new or empty one.
        is_application: Write an application without an adapter.

    Raises:
        UsageProblem: The directory is not empty, or cannot be written.
    """
    directory = directory.expanduser().absolute()
    name = re.sub(r"[^a-z0-9._-]+", "-", directory.name.lower()).strip("-.") or "mine"
    folder = _APPLICATION if is_application else _STARTER
    files = _FILES_OF_AN_APPLICATION if is_application else _FILES
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UsageProblem(f"{directory} is not empty; name a new directory.")
        for file in files:
            text = (folder / file).read_text(encoding="utf-8").replace('"starter"', f'"{name}"')
            (directory / file).write_text(text, encoding="utf-8")
        (directory / _SCHEMA).write_text(text_of("design"), encoding="utf-8")
    except OSError as error:
        raise UsageProblem(
            f"{directory} cannot be written: {error.strerror}; name a new directory."
        ) from None
    return [directory / file for file in (*files, _SCHEMA)]
