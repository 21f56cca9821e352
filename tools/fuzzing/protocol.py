"""Lines of a design on its standard output, read by a real instance.

The first byte chooses the request that waits for an answer, the second the size of the pieces in
which the rest is read.
"""

import json
import os
from io import BytesIO, FileIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest import mock

from fuzzing import MOST_SENTENCE, folder, is_plain
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import (
    Activate,
    Deactivate,
    Hello,
    Lag,
    Measure,
    Message,
    Query,
    Start,
    Stop,
    Workers,
)
from upheld.supervisor import instance as instances
from upheld.supervisor.instance import Instance, Options
from upheld.threads import raise_failure

START: Final = Start(
    program="relay",
    application_id="app",
    instance="a",
    bootstrap="localhost:1",
    client={},
    topics={"input": "app-input", "output": "app-output"},
    session_timeout_ms=1000,
    transaction_timeout_ms=1000,
    state_dir="/nowhere",
    durable_dir="/nowhere",
)
ASKED: Final[tuple[Message | None, ...]] = (
    None,
    Hello(),
    START,
    Query(table="t", key="k"),
    Lag(),
    Workers(),
    Measure(),
    Activate(after={"app-input": 1}),
    Deactivate(),
    Stop(deadline_ms=1),
)
LINES: Final = (
    {"type": "hello", "protocol": 1, "name": "d", "version": "1", "language": "x"},
    {"type": "ready", "consumer_group": "app", "internal_topics": ["app-changelog"], "table": "t"},
    {"type": "failed", "kind": "poison", "message": "at app-input-0@7", "again": True},
    {"type": "notice", "kind": "offset-reset", "topic": "t", "partition": 0, "from": 1, "to": 2},
    {"type": "unsupported", "reason": "no"},
    {"type": "error", "definite": True, "message": "no"},
    {"type": "value", "value": "1"},
    {"type": "workers", "pids": [1, 2]},
    {"type": "stopped"},
    {"type": "standing_by"},
    {"type": "deactivated", "emitted_through": {"app-input": 1}},
)
SEEDS: Final = tuple(
    bytes([asked, 255]) + json.dumps(line).encode() + b"\n"
    for asked in range(len(ASKED))
    for line in LINES
)
WORDS: Final = (b'{"type":', b'"hello"', b'"ready"', b"\n", b"[" * 500, b"9" * 5_000, b"\\ud800")
MANIFEST: Final = Manifest.model_validate(
    {
        "folder": Path("/"),
        "name": "d",
        "version": "1",
        "command": ["true"],
        "programs": ["relay"],
        "modes": ["at_least_once"],
    }
)


def protocol(data: bytes) -> None:
    """Have an instance read bytes; a breach in one sentence is what may come of them.

    Raises:
        Exception: The listening thread died, or the sentence is none.
    """
    if len(data) < 2:
        return
    reads, writes = os.pipe()
    process: Any = SimpleNamespace(
        pid=0, stdin=BytesIO(), stdout=FileIO(reads), poll=lambda: 0, wait=lambda _=None: 0
    )
    run: Any = SimpleNamespace(environment={}, spawn=lambda _: process)
    with mock.patch.object(instances, "CHUNK_BYTES", 1 + 16 * data[1]):
        instance = Instance(MANIFEST, run, folder(), Options(name="it"))
        instance._asked = ASKED[data[0] % len(ASKED)]
        instance._started = START
        os.write(writes, data[2:])
        os.close(writes)
        instance._listener.join()
    instance.log.close()
    raise_failure()
    if instance.breach:
        said = str(instance.breach)
        assert is_plain(said), repr(said)
        assert len(said) <= MOST_SENTENCE
    if instance.failed:
        assert instance.failed.message.encode()
