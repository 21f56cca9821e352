"""Files and texts of others: whatever stands in them, they are read or refused.

A refusal is one sentence that names the file.
"""

import ast
import gzip
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld import reading
from upheld.brokers.properties import read_client_properties
from upheld.errors import UsageProblem
from upheld.protocol import manifest
from upheld.reading import (
    MOST_BYTES_BY_HAND,
    loaded,
    read_bytes,
    read_text,
    read_toml,
    read_unpacked,
)
from upheld.report import read as read_report
from upheld.spec import catalogue, durations, kills
from upheld.spec.gherkin import read_feature
from upheld.spec.selection import rows_of_the_file
from upheld.sweep.journal import Journal, Plan

PACKAGE = Path(reading.__file__).parent
PLAN = Plan(design="plain", program="relay", mode="exactly_once", scope="txn")

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda each: (
        st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3)
    ),
    max_leaves=8,
)


ODD = (
    *(b"", b"NaN", b"[Infinity, -Infinity]", b"1e999", b"-0", b"01", b"1" * 100, b" 1 ", b"1 1"),
    *(b'"\\ud800"', b'"\x01"', b"\xef\xbb\xbf1", '"ä"'.encode("utf-16")),
    *(b'{"a": 1, "a": 2}', b'{"a":}', b"[" * 150 + b"]" * 150),
)


def _damaged() -> Iterator[st.SearchStrategy[bytes]]:
    """Return JSON, JSON that is cut or has a byte too many, and bytes of any kind."""
    sound = VALUES.map(lambda value: json.dumps(value).encode())
    yield sound
    yield st.tuples(sound, st.integers(0, 40)).map(lambda both: both[0][: both[1]])
    yield st.tuples(sound, st.integers(0, 40), st.binary(max_size=2)).map(
        lambda all_three: all_three[0][: all_three[1]] + all_three[2] + all_three[0][all_three[1] :]
    )
    yield st.binary(max_size=20)
    yield st.sampled_from(ODD)


@given(st.one_of(*_damaged()))
def test_json_is_read_as_json_reads_it(data: bytes) -> None:
    """The quick reader gives the same as the slow one.

    It refuses the same text, with the same words; and half of a surrogate pair besides.
    """
    assert _outcome(loaded, data) == _outcome(_slowly, data)


def _slowly(data: bytes) -> object:
    value = json.loads(data)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _outcome(read_json: Any, data: bytes) -> tuple[str, str]:
    try:
        return "gives", repr(read_json(data))
    except ValueError as error:
        return "refuses", repr(error)


class Reader(NamedTuple):
    """A reader of a file, and the name that the file has to have."""

    file: str
    read: Callable[[Path], object]


def _named_by_a_manifest(path: Path) -> object:
    known = f"name = 'a'\nversion = '1'\ncommand = ['true']\nknown_failures = '{path.name}'\n"
    path.with_name("design.toml").write_text(known + "programs=['relay']\nmodes=['exactly_once']")
    return manifest.load(str(path.parent))


READERS = {
    "manifest": Reader("design.toml", lambda path: manifest.load(str(path))),
    "known failures": Reader("known", _named_by_a_manifest),
    "guarantees": Reader("guarantees.toml", lambda path: catalogue.load(path.parent)),
    "feature": Reader("a.feature", lambda path: read_feature(path, "a.feature")),
    "rows": Reader("rows", lambda path: rows_of_the_file(path, catalogue.load(), [])),
    "properties": Reader("client", lambda path: read_client_properties(path, path.parent)),
    "report": Reader("report.jsonl", read_report),
    "journal": Reader("sweep.jsonl", lambda path: Journal(path.parent, PLAN)),
    "durations": Reader("durations.json", durations.load),
    "kills": Reader("kills.json", kills.load),
}


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def _of(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


DEEP = 100_000
FILES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "empty": _of(b""),
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "a device without end": lambda path: path.symlink_to("/dev/zero"),
    "a device that is empty": lambda path: path.symlink_to("/dev/null"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to nowhere": lambda path: path.symlink_to(path.with_name("gone")),
    "a terabyte": _sparse,
    "more than a person writes": _of(b"# x\n" * (MOST_BYTES_BY_HAND // 4 + 1)),
    "deep lists": _of(b"a = " + b"[" * DEEP + b"]" * DEEP + b"\n"),
    "deep tables": _of(b"a = " + b"{a = " * DEEP + b"}" * DEEP + b"\n"),
    "deep JSON": _of(b"[" * DEEP + b"]" * DEEP + b"\n"),
    "deep JSON that is cut": _of(b'{"a":' * DEEP + b"\n"),
    "a key of many parts": _of(b".".join([b"a"] * DEEP) + b" = 1\n"),
    "a table of many parts": _of(b"[" + b" . ".join([b'"a"'] * DEEP) + b"]\n"),
    "a long number": _of(b"a = " + b"9" * DEEP + b"\n"),
    "a long number in JSON": _of(b'{"format": ' + b"9" * DEEP + b"}\n"),
    "no number": _of(b'{"format": NaN, "designs": {"plain": {"rows_s": {"a": 1e999}}}}\n'),
    "half a pair": _of(b'{"kind": "summary", "upheld": "\\ud800"}\n'),
    "no UTF-8": _of(b"\xff\xfe\x80 = 1\n"),
    "UTF-16": _of("a = 1\n".encode("utf-16")),
    "NUL": _of(b"\0\0\0\0\n"),
    "backslashes": _of(b"\\" * DEEP + b"\n" + b"\\" * DEEP),
    "one long line": _of(b"x" * DEEP),
    "other ends of lines": _of("a\u2028b\x85c\x0bd\r\n\re".encode()),
    "escapes of a terminal": _of(b"\x1b]0;x\x07\x1b[2J = 1\n"),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_read_or_refused(tmp_path: Path, name: str, kind: str) -> None:
    """Each reader reads each hostile file, or says in one sentence that it cannot."""
    file, read = READERS[name]
    path = tmp_path / file
    FILES[kind](path)
    began = time.monotonic()
    try:
        read(path)
    except UsageProblem as problem:
        said = str(problem)
        assert said.isprintable()
        assert str(tmp_path) in said
    assert time.monotonic() - began < 5


def test_a_byte_order_mark_and_other_ends_of_lines(tmp_path: Path) -> None:
    """A file that an editor of another system wrote says the same."""
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfa = 1\r\nb = '''\r\nc'''\r\n")

    assert read_toml(tmp_path / "a.toml") == {"a": 1, "b": "c"}


def test_a_process_for_a_file(tmp_path: Path) -> None:
    """A pipe that a shell gives in the place of a file is read to its end."""
    end, begin = os.pipe()
    os.write(begin, b"plain G1\n")
    os.close(begin)

    assert read_text(Path(f"/dev/fd/{end}")) == "plain G1\n"
    os.close(end)


def test_a_pipe_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe is not waited for without end."""
    monkeypatch.setattr(reading, "SILENCE_S", 0.05)
    end, begin = os.pipe()
    with pytest.raises(UsageProblem, match=r"cannot be read: nothing has come from it for 0 s\."):
        read_bytes(Path(f"/dev/fd/{end}"))
    os.close(end)
    os.close(begin)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("a\0b", "cannot be read: embedded null byte."),
        ("a" * 300, "cannot be read: File name too long."),
        ("a/" * 3_000, "cannot be read: File name too long."),
        ("no/such/file", "no/such/file cannot be read: No such file or directory."),
        ("/proc/self/mem", "/proc/self/mem cannot be read: Input/output error."),
        ("/proc/1/mem/x", "/proc/1/mem/x cannot be read: Not a directory."),
    ],
)
def test_a_path_that_names_no_file(path: str, says: str) -> None:
    """The reason stands in the sentence."""
    with pytest.raises(UsageProblem) as problem:
        read_bytes(Path(path))

    assert str(problem.value).endswith(says)


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_file_that_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that fails in the middle is refused, and no descriptor stays open."""
    (tmp_path / "a").write_text("x")
    before = _open_files()

    def fails(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "read", fails)
        with pytest.raises(UsageProblem, match="a cannot be read: Input/output error"):
            read_bytes(tmp_path / "a")
    assert _open_files() == before


# Modules that read by themselves, and what it is that they read.
BY_THEMSELVES = {
    "adapter.py": "requests; it is copied into designs, and stands on nothing",
    "brokers/embedded.py": "the log of the harness's own broker",
    "brokers/image.py": "a loader of this machine",
    "brokers/jars.py": "a lock file and jars, whose digests it knows",
    "brokers/node.py": "the log of the harness's own broker",
    "cli/__init__.py": "nothing: it opens /dev/null",
    "history/__init__.py": "a history, line by line",
    "history/keeping.py": "a history that the run wrote just now",
    "injectors/clock.py": "/proc",
    "injectors/disk/watcher.py": "/proc",
    "masking.py": "a log, line by line",
    "reading.py": "everything",
    "report/folder.py": "the first bytes of a regular file",
    "report/logs.py": "the end of a log, which is a regular file",
    "runner/lane.py": "messages of the harness's own processes",
    "runner/lanes.py": "messages of the harness's own processes",
    "scaffold/application/app.py": "records; it is copied, and no part of the harness",
    "scaffold/__init__.py": "files of the package",
    "stores/cassandra_server/process.py": "the log of the harness's own server",
    "stores/cassandra_server/query_log.py": "the log of the harness's own server",
    "supervisor/breaches.py": "a line of a design, and the end of its log",
    "supervisor/contained.py": "a file that the harness wrote just now",
    "supervisor/containers.py": "/proc",
    "supervisor/costs.py": "/proc",
    "supervisor/namespace/namespace.py": "the hosts file of this machine",
    "sweep/lanes.py": "records that lanes of this sweep write just now",
    "supervisor/guard.py": "requests of the harness",
    "supervisor/reaper.py": "/proc",
    "supervisor/removal.py": "/proc",
    "supervisor/session.py": "/proc",
    "supervisor/subjects.py": "bytes of regular files, of which it makes a digest",
}
READS = {"read_text", "read_bytes", "loads", "load", "parse", "fromstring"}
LIBRARIES = {"json", "tomllib", "pickle", "ET", "yaml", "csv", "marshal"}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data, ""),
        (lambda data: data[:-12], "end-of-stream marker"),
        (lambda data: data[:20] + b"xx" + data[22:], "cannot be read"),
        (lambda data: data[:2] + bytes(30), "cannot be read"),
    ],
    ids=["whole", "cut", "damaged", "none"],
)
def test_a_compressed_file_is_read_or_refused(
    tmp_path: Path, damage: Callable[[bytes], bytes], said: str
) -> None:
    """One sentence says that it is cut or damaged."""
    path = tmp_path / "h.jsonl.gz"
    path.write_bytes(damage(gzip.compress(b"a line\n" * 100)))

    if said:
        with pytest.raises(UsageProblem, match=said):
            read_unpacked(path)
    else:
        assert read_unpacked(path) == b"a line\n" * 100


def test_a_small_file_that_grows_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit holds for what comes of a compressed file too."""
    monkeypatch.setattr("upheld.reading.MOST_BYTES", 1000)
    path = tmp_path / "h.jsonl.gz"
    path.write_bytes(gzip.compress(b"x" * 100_000))

    with pytest.raises(UsageProblem, match="more than 1000 bytes"):
        read_unpacked(path)


def _readings(module: Path) -> Iterator[int]:
    """Yield the lines in which a module reads a file or a text by itself."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name = node.func.attr
        owner = node.func.value
        is_of_library = isinstance(owner, ast.Name) and owner.id in LIBRARIES
        modes = [each.value for each in node.args if isinstance(each, ast.Constant)]
        is_opened = name == "open" and any(str(mode).startswith("r") for mode in modes)
        is_whole_file = name in {"read_text", "read_bytes"}
        if is_whole_file or is_opened or (is_of_library and name in READS):
            yield node.lineno


def test_no_reader_stands_alone() -> None:
    """Files of a user, a design or an earlier run are read by `upheld.reading` alone.

    A module that reads by itself stands in a list with its reason. The XML of junit.xml is read
    from bytes that it gave.
    """
    alone = {
        f"{path.relative_to(PACKAGE).as_posix()}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in {"impl", "features", "steps", "generators"}
        for line in _readings(path)
        if path.relative_to(PACKAGE).as_posix() not in BY_THEMSELVES
    }

    assert {place for place in alone if not place.startswith("report/writer.py")} == set()
