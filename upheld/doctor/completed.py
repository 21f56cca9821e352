"""Lines that a design.toml lacks, from what was seen.

Lines that are there stay as they are, with their comments. The new text is read before it is
written: it has to say what the old one said, and the new values.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from upheld.doctor.seen import Outputs, Seen
from upheld.errors import UsageProblem
from upheld.protocol.manifest import Manifest
from upheld.protocol.subject import FIXED
from upheld.reading import loaded_toml

# The group of an application whose file names none, though its names are fixed.
NOT_NAMED: Final = "unknown"


class Addition(NamedTuple):
    """A field that is missing.

    Attributes:
        table: The names of its table, from the outside; none for the top.
        name: Its name.
        value: Its value, a text or a list of texts.
    """

    table: tuple[str, ...]
    name: str
    value: Any

    @property
    def line(self) -> str:
        """The line of the file."""
        return f"{self.name} = {json.dumps(self.value, ensure_ascii=False)}"


def assumed(tables: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the values of missing fields with which an application is started."""
    known = {
        "name": re.sub(r"[^\w.-]", "-", folder.name) or "application",
        "version": "1",
        "modes": ["at_least_once"],
        "shape": "map",
        "group": NOT_NAMED if tables.get("names") == FIXED else "{application_id}",
    }
    if tables.get("progress") == "none":
        del known["group"]  # it may have none
    return {name: value for name, value in known.items() if name not in tables}


def own_topics(seen: Seen) -> list[str]:
    """Return the topics that it asked to make, beside those that it was given."""
    return [name for name in seen.topics.created if name not in seen.topics.given.values()]


def as_declared(seen: Seen) -> list[str]:
    """Return the topics that it makes for itself, as `internal_topics` names them."""
    return [name.replace(seen.application_id, "{application_id}") for name in own_topics(seen)]


def additions(tables: Mapping[str, Any], folder: Path, seen: Seen) -> list[Addition]:
    """Return what is missing, as it was seen."""
    found = assumed(tables, folder)
    if "modes" in found and "txn_offset_commit" in seen.commits.by:
        found["modes"] = ["exactly_once"]
    if "shape" in found:
        found["shape"] = seen.shape
    if "group" in found:
        name = next(iter(seen.groups), "")
        is_fixed = seen.application_id not in name
        if not name or is_fixed != (tables.get("names") == FIXED):
            del found["group"]  # it has none, or one of the other kind: there is nothing to write
        else:
            found["group"] = name.replace(seen.application_id, "{application_id}")
    own = [name for name in own_topics(seen) if seen.application_id in name]
    if own and tables.get("names") != FIXED and "internal_topics" not in tables:
        found["internal_topics"] = as_declared(seen)
    added = [Addition((), name, value) for name, value in found.items()]
    for role, table in tables.get("output", {}).items():
        found_there = seen.outputs.get(role, Outputs())
        if "format" not in table and 0 < found_there.unreadable == found_there.count:
            added.append(Addition(("output", role), "format", "bytes"))
    return added


def shaped(design: Manifest, added: Sequence[Addition]) -> Manifest:
    """Return an application with the shape that was seen, if its file has none."""
    seen = [each.value for each in added if each.name == "shape"]
    if not seen or design.application is None:
        return design
    application = design.application.model_copy(update={"shape": seen[0]})
    return design.model_copy(update={"application": application})


def completed(text: str, added: Sequence[Addition]) -> str:
    """Return the text of a design.toml with what is missing.

    Raises:
        UsageProblem: There is no line at which it can be added.
    """
    for each in added:
        text = _with(text, each)
    return text


def _with(text: str, addition: Addition) -> str:
    """Return a text with one more line, at the first place where it means what it is to mean."""
    wanted = loaded_toml(text)
    table = wanted
    for name in addition.table:
        table = table[name]
    table[addition.name] = addition.value
    lines = text.splitlines(keepends=True)
    ends = "\r\n" if "\r\n" in text else "\n"
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += ends
    for place in _places(lines, is_top=not addition.table):
        new = "".join([*lines[:place], addition.line, ends, *lines[place:]])
        if _says(new, wanted):
            return new
    raise UsageProblem(f"design.toml has no line at which {addition.line} can be added by itself.")


def _places(lines: list[str], *, is_top: bool) -> list[int]:
    """Return the numbers of lines before which a line may be added: beside the heads of tables."""
    heads = [number for number, line in enumerate(lines) if line.lstrip().startswith("[")]
    if not is_top:
        return [number + 1 for number in heads]
    return [*(_above_comments(lines, number) for number in heads), len(lines)]


def _above_comments(lines: list[str], number: int) -> int:
    """Return where the comments and empty lines above the head of a table begin."""
    while number and (not lines[number - 1].strip() or lines[number - 1].lstrip().startswith("#")):
        number -= 1
    return number


def _says(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return loaded_toml(text) == wanted
    except ValueError:
        return False
