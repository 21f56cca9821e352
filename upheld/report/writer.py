"""The files of a report: `report.jsonl`, a line a row, and `junit.xml`."""

import errno
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from contextlib import suppress
from io import FileIO
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import to_json

from upheld.errors import UsageProblem
from upheld.reading import MOST_LEVELS, loaded, read_bytes
from upheld.report.model import DEPTHS_SINCE, FORMAT, RowResult, Summary
from upheld.text import visible_data


class Writer:
    """The writer of `report.jsonl`.

    It writes line by line, so that nothing recorded is lost whatever happens next.
    """

    def __init__(self, out: Path) -> None:
        self._file = FileIO(str(out / "report.jsonl"), "w", opener=_only_a_file)

    def write(self, line: RowResult | Summary) -> None:
        """Append one whole line, or none.

        A disk that fills up in the middle of a line leaves the lines before it readable.

        Raises:
            OSError: The line cannot be written whole.
        """
        text = to_json(visible_data(line.model_dump(mode="json"))) + b"\n"
        began = self._file.tell()
        if self._file.write(text) < len(text):
            self._file.truncate(began)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._file.name)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _only_a_file(name: str, flags: int) -> int:
    """Open a file, and no link to one; a pipe without a reader is not waited for."""
    return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def read(path: Path) -> tuple[list[RowResult], Summary]:
    """Read a report back.

    Raises:
        UsageProblem: The report is empty, cut or partial, or of a newer format.
    """
    content = read_bytes(path).removesuffix(b"\n")
    try:
        lines = [loaded(line) for line in content.split(b"\n")] if content else []
    except ValueError as error:
        raise UsageProblem(f"{path} cannot be read as a report: {error}") from None
    if not lines or not isinstance(lines[-1], dict) or lines[-1].get("kind") != "summary":
        raise UsageProblem(f"{path} is cut: it does not end with a summary, so it proves nothing")
    if isinstance(given := lines[-1].get("format", 1), int) and given > FORMAT:
        raise UsageProblem(
            f"{path} has format {given}, and this version reads {FORMAT} at most; use a newer one"
        )
    try:
        summary = Summary(**lines[-1])
        if summary.format < DEPTHS_SINCE:
            summary.chosen = summary.promised
        return [RowResult(**line) for line in lines[:-1]], summary
    except (ValidationError, TypeError) as error:
        said = " ".join(str(error).split())
        raise UsageProblem(f"{path} holds a line that is none of a report: {said[:200]}") from None


def joined(out: Path, parts: Iterable[Path]) -> None:
    """Write one junit.xml of several.

    A part that was never written, is cut, or is nested as no junit.xml is, is left out.
    """
    whole = ET.Element("testsuites")
    for part in parts:
        with suppress(UsageProblem, ET.ParseError, ValueError, LookupError):
            suites = ET.fromstring(read_bytes(part))
            if _levels(suites) <= MOST_LEVELS:
                whole.extend(suites)
    ET.ElementTree(whole).write(out / "junit.xml", encoding="utf-8", xml_declaration=True)


def _levels(root: ET.Element) -> int:
    """Count the levels of elements within one another, at most one more than are read."""
    level = [root]
    count = 0
    while level and count <= MOST_LEVELS:
        level = [inner for element in level for inner in element]
        count += 1
    return count
