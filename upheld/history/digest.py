"""The running digest of a history, which its last line closes.

It is a SHA-256 over the lines as they are written, each with its line end. It guards against
mistakes and cut files: a design or a user that can write the file can also compute a digest.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

PART_LINES: Final = 256  # after so many lines the digest so far is noted
_PART_DIGITS: Final = 16  # of a digest so far, which only says where a history was altered
_FIELD: Final = b',"digest":'  # of the last line; it is the last field


class Part(NamedTuple):
    """The first digits of the digest after so many lines."""

    lines: int
    sha256: str


class Digest(BaseModel):
    """The digest of a history: of all lines, and of its last line up to this field."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lines: int = Field(description="the number of lines, with the last one")
    sha256: str = Field(description="of all lines up to this field, in hexadecimal digits")
    parts: tuple[Part, ...] = Field(
        default=(), description="the first digits after so many lines, for each part"
    )


class RunningDigest:
    """The digest of the lines that were written so far."""

    def __init__(self) -> None:
        self.lines = 0
        self.parts: list[Part] = []
        self._sha = sha256()
        self._noted = 0  # lines

    @property
    def sha256(self) -> str:
        """The digest of all lines so far, as hexadecimal digits."""
        return self._sha.hexdigest()

    def add(self, data: bytes, lines: int = 1) -> None:
        """Take whole lines, each with its line end."""
        self._sha.update(data)
        self.lines += lines
        if self.lines - self._noted >= PART_LINES:
            self._noted = self.lines
            self.parts.append(Part(self.lines, self.sha256[:_PART_DIGITS]))

    def closed(self, line: bytes) -> bytes:
        """Return the last line with the digest as its last field.

        Args:
            line: A JSON object without its line end, and without a digest.
        """
        begin = line.removesuffix(b"}")
        whole = self._sha.copy()
        whole.update(begin)
        digest = Digest(lines=self.lines + 1, sha256=whole.hexdigest(), parts=tuple(self.parts))
        return begin + _FIELD + digest.model_dump_json().encode() + b"}"


class Found(NamedTuple):
    """The digest of a file's lines, and how it differs from the stated one."""

    sha256: str  # of all lines; a last line end that is missing counts as there
    is_stated: bool  # whether the last line states a digest
    altered: str  # how the file differs from what was written; empty if it does not


def digest_of(lines: Sequence[bytes]) -> Found:
    """Compare the lines of a history with the digest in the last one.

    The lines have no line ends.
    """
    begin, _, stated = lines[-1].rpartition(_FIELD)
    sha = sha256(b"".join([line + b"\n" for line in lines])).hexdigest()
    if not begin:
        return Found(sha, is_stated=False, altered="")
    try:
        digest = Digest.model_validate_json(stated.rstrip().removesuffix(b"}"))
    except ValidationError:
        return Found(sha, is_stated=True, altered="its digest cannot be read")
    altered = _difference(lines[:-1], begin, digest)
    if digest.lines != len(lines):
        altered += f"; it had {digest.lines} lines, and has {len(lines)}"
    return Found(sha, is_stated=True, altered=altered)


def _difference(before: Sequence[bytes], last: bytes, digest: Digest) -> str:
    """Return which lines are not those of a digest; empty if all are.

    Args:
        before: All lines but the last one.
        last: The last line, up to its digest.
        digest: The digest that it states.
    """
    sha = sha256()
    known = 0  # lines that are as they were written
    for part in digest.parts:
        sha.update(b"".join([line + b"\n" for line in before[known : part.lines]]))
        if sha.hexdigest()[:_PART_DIGITS] != part.sha256 or part.lines <= known:
            return f"lines {known + 1} to {part.lines} are not those that were written"
        known = part.lines
    sha.update(b"".join([line + b"\n" for line in before[known:]]) + last)
    if sha.hexdigest() == digest.sha256 and digest.lines == len(before) + 1:
        return ""
    return f"lines {known + 1} to {digest.lines} are not those that were written"
