"""The file of a report: `report.jsonl`, a line a row."""

import errno
import os
from io import FileIO
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from pydantic_core import to_json

from upheld.errors import UsageProblem
from upheld.reading import is_folder, loaded, read_bytes
from upheld.report.model import DEPTHS_SINCE, FORMAT, RowResult, Summary
from upheld.text import visible_data

NAME: Final = "report.jsonl"


class Writer:
    """The writer of `report.jsonl`.

    It writes line by line, so that nothing recorded is lost whatever happens next.
    """

    def __init__(self, out: Path) -> None:
        self._file = FileIO(str(out / NAME), "w", opener=_only_a_file)

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


def file_of(path: Path) -> Path:
    """Return the report that a path names, or the one in the folder that it names."""
    return path / NAME if is_folder(path) else path


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
