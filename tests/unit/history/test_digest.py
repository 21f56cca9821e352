"""A history states the digest of its lines, and where it was altered."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from histories import Story

from upheld.errors import UsageProblem
from upheld.history import History
from upheld.history.digest import PART_LINES, Digest, RunningDigest, digest_of
from upheld.history.events import Ended
from upheld.history.reading import read, recording

Lines = list[bytes]


def fed(tmp_path: Path, entries: int = 2 * PART_LINES + 20) -> Path:
    """Record a history of that many inputs, in several parts."""
    story = Story()
    for _ in range(entries):
        story.entry(ada=1)
    story.claims("fold")
    return story.recorded(tmp_path / "h.jsonl")


def test_the_hash_is_that_of_the_file(tmp_path: Path) -> None:
    """A user can compare a report with `sha256sum`; a last line end may be missing."""
    path = fed(tmp_path)
    whole = path.read_bytes()

    found = recording(path)
    path.write_bytes(whole.removesuffix(b"\n"))

    assert (found.sha256, found.has_digest) == (sha256(whole).hexdigest(), True)
    assert recording(path).sha256 == found.sha256


def test_the_writer_knows_the_hash(tmp_path: Path) -> None:
    """The report of a run has the hash without reading the history again."""
    history = History([*Story().history.events, Ended(verdict="upheld", seconds=1)])
    with History(history.events, path=tmp_path / "h.jsonl") as written:
        known = written.digest.sha256

    assert known == recording(tmp_path / "h.jsonl").sha256


def test_the_last_line_says_how_many_there_are(tmp_path: Path) -> None:
    """Lines, the digest, and the digest so far after each part."""
    path = fed(tmp_path)
    (ended,) = read(path).of(Ended)

    assert isinstance(ended.digest, Digest)
    assert ended.digest.lines == len(path.read_bytes().splitlines())
    assert [part.lines for part in ended.digest.parts] == [PART_LINES, 2 * PART_LINES]


CHANGES: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "a line is removed": (lambda lines: lines[:300] + lines[301:], "lines 257 to 512 are not"),
    "a line is doubled": (lambda lines: [*lines[:5], *lines[4:]], "lines 1 to 256 are not"),
    "two lines are swapped": (
        lambda lines: [*lines[:9], lines[10], lines[9], *lines[11:]],
        "lines 1 to 256 are not",
    ),
    "a byte is another": (
        lambda lines: [*lines[:520], lines[520].replace(b"entries", b"entriez"), *lines[521:]],
        "lines 513 to 536 are not",
    ),
    "the verdict is another": (
        lambda lines: [*lines[:-1], lines[-1].replace(b'"upheld"', b'"violated"')],
        "lines 513 to 536 are not",
    ),
    "all records are removed": (
        lambda lines: [line for line in lines if b'"record"' not in line],
        "it had 536 lines, and has 4",
    ),
    "line ends are those of Windows": (
        lambda lines: [line + b"\r" for line in lines],
        "lines 1 to 256 are not",
    ),
    "an empty object is put in": (
        lambda lines: [*lines[:-1], lines[3], lines[-1]],
        "it had 536 lines, and has 537",
    ),
    "the digest is cut": (
        lambda lines: [*lines[:-1], lines[-1][:-30] + b'"}}'],
        "",
    ),
    "the count of lines is another": (
        lambda lines: [*lines[:-1], lines[-1].replace(b'"lines":536', b'"lines":535')],
        "it had 535 lines, and has 536",
    ),
    "a part is another": (
        lambda lines: [*lines[:-1], lines[-1].replace(b"[256,", b"[255,")],
        "lines 1 to 255 are not",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_refused_with_its_place(tmp_path: Path, change: str) -> None:
    """One sentence says which lines are not as they were written."""
    path = fed(tmp_path)
    alter, says = CHANGES[change]
    path.write_bytes(b"\n".join(alter(path.read_bytes().splitlines())) + b"\n")

    with pytest.raises(UsageProblem) as refused:
        recording(path)

    assert str(refused.value).startswith(f"{path}")
    assert says in str(refused.value)


def test_a_digest_in_another_place_is_none() -> None:
    """The words of a digest inside of a text state no digest."""
    found = digest_of([b"{}", b'{"reason":"\\",\\"digest\\":{}"}'])

    assert (found.is_stated, found.altered) == (False, "")


def test_each_attempt_has_its_own(tmp_path: Path) -> None:
    """A second attempt writes over the file of the first one."""
    path = fed(tmp_path)
    first = recording(path).sha256
    Story().recorded(path)

    assert recording(path).sha256 != first


def test_parts_are_noted_as_lines_are_added() -> None:
    """A block of lines is a part of its own if it is long."""
    digest = RunningDigest()
    digest.add(b"{}\n" * 700, 700)
    digest.add(b"{}\n")

    assert [part.lines for part in digest.parts] == [700]
    assert digest.sha256 == sha256(b"{}\n" * 701).hexdigest()
