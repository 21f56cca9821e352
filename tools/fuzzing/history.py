"""Fuzz the reader of histories, and the judge.

The bytes say how genuine lines are changed: left out, doubled, swapped, cut, or edited in a value.
The changed file has its own digest or none, so that the judge gets to see the changed lines.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final
from unittest import mock

from fuzzing import is_plain
from upheld.errors import UsageProblem
from upheld.history.digest import RunningDigest
from upheld.judging import rejudge
from upheld.judging.rejudge import judge

TOPICS: Final = {"entries": "app-entries", "balances": "app-balances", "balance-changes": "app-c"}
ODD_VALUES: Final = (
    b"null",
    b"-1",
    b"NaN",
    b"1e999",
    b"9" * 6_000,
    b"[" * 3_000 + b"]" * 3_000,
    b'"\\ud800"',
    b'"base64:!"',
    b'"\\u001b[2J\\n\\u0000"',
    b"9223372036854775807",
    b"{}",
    b"true",
    b'""',
)
BEGUN: Final[dict[str, object]] = {
    "kind": "begun",
    "scenario": "G22.dies-after-a-commit[ledger-exactly_once]",
    "design": "fuzzed",
    "design_version": "1",
    "atomic": "batch",
    "local_state": True,
    "broker": "none",
    "seed": 1,
    "attempt": 0,
    "application_id": "app",
    "names_are_ours": True,
}
SENTENCES: Final = {
    "fold": "the visible outputs are the fold of the committed input",
    "relation": "the outputs match the model in order and count under exactly_once",
    "side-effects": "nothing else changes on the broker",
}


def history(data: bytes) -> None:
    """Judge genuine lines that are changed as the bytes say.

    Raises:
        Exception: Something other than one sentence for the user came of it.
    """
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(rejudge, "SHRUNK_S", 0.0):
        path = Path(folder) / "history.jsonl"
        path.write_bytes(changed(data))
        try:
            judge(path)
        except UsageProblem as problem:
            said = str(problem)
            if not (is_plain(said) and str(path) in said):
                raise AssertionError(f"no sentence for a user: {said!r}") from None


def changed(data: bytes) -> bytes:
    """Return a history's lines, changed as the bytes say; raw bytes after a 0."""
    if data[:1] in {b"", b"\0"}:
        return data[1:]
    lines = list(genuine())
    moves = [data[place : place + 4] for place in range(1, min(len(data), 41), 4)]
    for move in moves:
        if len(move) == 4 and lines:
            kind, first, second, third = move
            CHANGES[kind % len(CHANGES)](lines, first % len(lines), second, third)
    if data[0] % 3 == 0 or not lines:
        return b"\n".join(lines)
    digest = RunningDigest()
    for line in lines[:-1]:
        digest.add(line + b"\n")
    return b"\n".join([*lines[:-1], digest.closed(lines[-1]), b""])


def _leave_out(lines: list[bytes], place: int, _: int, __: int) -> None:
    del lines[place]


def _double(lines: list[bytes], place: int, _: int, __: int) -> None:
    lines.insert(place, lines[place])


def _move(lines: list[bytes], place: int, to: int, _: int) -> None:
    line = lines.pop(place)
    lines.insert(to % (len(lines) + 1), line)


def _cut(lines: list[bytes], place: int, to: int, _: int) -> None:
    lines[place] = lines[place][: to % (len(lines[place]) + 1)]


def _edit_a_byte(lines: list[bytes], place: int, at: int, by: int) -> None:
    line = bytearray(lines[place])
    if line:
        line[at % len(line)] = by
    lines[place] = bytes(line).replace(b"\n", b" ")


def _edit_a_value(lines: list[bytes], place: int, at: int, by: int) -> None:
    """Replace one value of a line by an odd one."""
    with suppress(ValueError, RecursionError):
        fields = json.loads(lines[place])
        if isinstance(fields, dict) and fields:
            name = sorted(fields)[at % len(fields)]
            fields[name] = "<odd>"
            line = json.dumps(fields).encode()
            lines[place] = line.replace(b'"<odd>"', ODD_VALUES[by % len(ODD_VALUES)])


CHANGES: Final[tuple[Callable[[list[bytes], int, int, int], None], ...]] = (
    _leave_out,
    _double,
    _move,
    _cut,
    _edit_a_byte,
    _edit_a_value,
    _edit_a_value,
    _edit_a_value,
)


@cache
def genuine() -> tuple[bytes, ...]:
    """Return the lines of a short history with each kind of event, without a digest."""
    return tuple(json.dumps(each, separators=(",", ":")).encode() for each in _events())


def _events() -> Iterator[dict[str, object]]:
    yield BEGUN | {"claims": list(SENTENCES.values())}
    yield {
        "kind": "application",
        "name": "app",
        "application_id": "app",
        "program": "ledger",
        "mode": "exactly_once",
        "topics": TOPICS,
        "parameters": {"commit_interval_ms": 100},
        "transaction_timeout_ms": 3000,
    }
    yield _names()
    yield _of_app("instance", name="a", event="started", detail="a.txt")
    yield _record("app-entries", 0, key=None, value="base64:CgJlMBABGgcKA2FkYRAC")
    yield _record("app-balances", 0, key="ada", value='{"a":1}')
    yield _of_app("fed", records={"app-entries-0": 1})
    yield _batch(0)
    mark = {"code": "process", "happening": "after-commit", "fault": "x", "evidence": {"at": [1]}}
    yield {"kind": "mark", "at_ms": 5} | mark
    yield _of_app("instance", name="a", event="killed")
    yield _of_app("committed", offsets={"app-entries-0": 1}, stable_ms=3, down=True)
    yield _claim("fold")
    yield _of_app("stored", rows=[["balances", "ada", "{}"]], writes=[[1, "balances", "ada"]])
    yield _of_app("told", lines=[["ada", "1"]])
    yield _of_app("lag", name="a", offsets=1, committed={}, high_watermark={"app-entries-0": 1})
    yield _claim("relation")
    yield _names()
    yield _claim("side-effects")
    ended = {"verdict": "violated", "seconds": 1.5, "reason": "it was so"}
    anomaly = {"name": "lost", "text": "ada lacks it", "key": "ada", "source": "app-entries-0@0"}
    yield {"kind": "ended", "code": None, "anomalies": [anomaly]} | ended


def _of_app(kind: str, **fields: object) -> dict[str, object]:
    return {"kind": kind, "at_ms": 1, "application": "app"} | fields


def _record(topic: str, offset: int, **fields: object) -> dict[str, object]:
    place = {"kind": "record", "topic": topic, "partition": 0, "offset": offset}
    return place | {"timestamp_ms": 1, "headers": [["h", "v"]], "seen_ms": 2} | fields


def _batch(offset: int) -> dict[str, object]:
    place = {"kind": "batch", "topic": "app-balances", "partition": 0, "base_offset": offset}
    producer = {"producer_id": 1, "producer_epoch": 0, "transactional": True, "control": None}
    return place | producer | {"last_offset": offset}


def _names() -> dict[str, object]:
    return {"kind": "names", "at_ms": 1, "topics": ["app-entries"], "groups": ["app"]}


def _claim(check: str) -> dict[str, object]:
    sentence = SENTENCES[check]
    return {"kind": "claim", "check": check, "application": "app", "sentence": sentence}
