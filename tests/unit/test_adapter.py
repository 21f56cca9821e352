"""The serve loop for Python designs keeps the protocol, whatever the design does."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from miniatures import MINIATURES, START, Run, Spawn, manifest, until

from upheld.protocol.messages import (
    Deactivated,
    Error,
    Failed,
    Ready,
    StandingBy,
    Stopped,
    Unsupported,
)
from upheld.supervisor.instance import Instance
from upheld.verdicts import AdapterBreach


@pytest.fixture(params=["own", "main"])
def thread(request: pytest.FixtureRequest) -> str:
    """Return the thread that the design runs on."""
    return str(request.param)


@pytest.fixture
def spawn(tmp_path: Path, thread: str) -> Iterator[Spawn]:
    """Spawn and greet miniatures that stand on the serve loop."""
    spawned = []

    def of(habit: str) -> Instance:
        command = [sys.executable, "serves.py", habit, thread]
        design = manifest("", command=command, capabilities=["reusable"])
        spawned.append(instance := Instance(design, Run(), tmp_path))
        instance.greet()
        return instance

    yield of
    for instance in spawned:
        instance.kill()


def test_stray_prints_go_to_the_log(spawn: Spawn) -> None:
    """A design's prints land in its log, and a reusable one starts again after stop."""
    instance = spawn("")

    for _ in range(2):
        assert instance.start(START) == Ready()
        assert instance.query("t", "k").type == "error"
        assert instance.stop(1000) == Stopped()
    assert instance.stderr_path.read_text() == "a stray line\n" * 2


def test_the_thread_that_it_runs_on(spawn: Spawn, thread: str) -> None:
    """An engine with signal handlers of its own needs the main one."""
    instance = spawn("says_its_thread")

    assert instance.start(START) == Ready()
    assert instance.stop(1000) == Stopped()
    assert instance.stderr_path.read_text().split() == ["a", "stray", "line", str(thread == "main")]


def test_an_exception_at_the_start_is_answered(spawn: Spawn) -> None:
    """The message is in the answer, and the traceback in the log.

    A stop is answered after the exception.
    """
    instance = spawn("breaks_at_start")

    assert instance.start(START) == Error(
        definite=True, message="ZeroDivisionError: no input to hold"
    )
    assert instance.stop(1000) == Stopped()  # and the log is read to its end
    assert "Traceback (most recent call last)" in instance.stderr_path.read_text()


def test_an_exception_in_an_answer_is_answered(spawn: Spawn) -> None:
    """A design that breaks at a question works on."""
    instance = spawn("")
    instance.start(START)

    assert instance.measure() == Error(definite=True, message="KeyError: 'size'")
    assert instance.query("t", "k").type == "error"
    assert instance.stop(1000) == Stopped()


def test_stop_that_is_not_heard(spawn: Spawn) -> None:
    """A worker that did not end within the deadline is never reported as stopped."""
    instance = spawn("hears_no_stop")
    instance.start(START)

    assert instance.stop(50) == Error(definite=False, message="not closed after 50 ms")


def test_stdin_ends_while_working(spawn: Spawn) -> None:
    """A design whose harness has gone exits, though its worker still works."""
    instance = spawn("hears_no_stop")
    instance.start(START)

    instance._hang_up()

    assert instance.wait_exit(5) == 1


def test_refusal_and_loud_stop_at_start(spawn: Spawn) -> None:
    """`open` may refuse, after which stop is answered, or fail loudly.

    After a loud failure the process exits, unless the design is sound.
    """
    refusing = spawn("refuses")
    failing = spawn("storage")
    sound = spawn("offset-lost")
    refusal = refusing.start(START)

    assert refusal == Unsupported(reason="tired")
    assert refusing.stop(1000) == Stopped()
    assert failing.start(START) == Failed(kind="storage", message="it cannot begin")
    assert failing.wait_exit(5) == 1
    for _ in range(2):
        assert sound.start(START) == Failed(
            kind="offset-lost", message="it cannot begin", again=True
        )
        assert sound.takes_another_start()


def test_loud_stop_while_it_works(spawn: Spawn) -> None:
    """A design that has let go of everything says so and takes another start.

    A design whose runtime is spoiled exits.
    """
    sound = spawn("poison")
    spoiled = spawn("fenced")
    for _ in range(2):
        sound.start(START)
        until(lambda: sound.failed is not None)
        assert sound.failed == Failed(kind="poison", message="it cannot go on", again=True)
        assert sound.takes_another_start()
    spoiled.start(START)

    assert spoiled.wait_exit(5) == 1
    assert spoiled.failed == Failed(kind="fenced", message="it cannot go on")
    assert not spoiled.takes_another_start()


def test_two_clusters(spawn: Spawn) -> None:
    """A design that stands by begins to work when it is activated.

    It hands over when it is told to, and can be started again.
    """
    instance = spawn("")

    assert instance.start(START.model_copy(update={"standing_by": True})) == StandingBy()
    assert instance.activate({"in-0": 7}) == Ready()
    assert instance.deactivate() == Deactivated(emitted_through={"in-0": 7})
    assert instance.stop(1000) == Stopped()
    assert instance.start(START) == Ready()


@pytest.mark.parametrize("habit", ["breaks", "breaks_in_c"])
def test_broken_worker(spawn: Spawn, habit: str) -> None:
    """A worker that raises ends the process and leaves its traceback in the log.

    It does so too if it raises what is no exception.
    """
    instance = spawn(habit)
    instance.start(START)

    assert instance.wait_exit(5) == 1
    assert "the engine broke" in instance.stderr_path.read_text()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello",
        b"[]",
        b"{}",
        b'{"type": 1}',
        b'{"type": "hello"',
        b'{"type": "query", "table": "t"}',
        b'{"type": "stop"}',
        b'{"type": "stop", "deadline_ms": "soon"}',
        b'{"type": "activate", "after": []}',
        b"[" * 100_000,
        b'{"type": "hello", "n": %s}' % (b"9" * 5_000),
        b"\xff\xfe{}",
        b"\0",
    ],
)
def test_a_line_that_is_no_request(line: bytes) -> None:
    """It is answered with one sentence, and the next request as ever."""
    ended = subprocess.run(
        [sys.executable, "serves.py", "", "own"],
        cwd=MINIATURES,
        input=line + b'\n{"type": "stop", "deadline_ms": 1000}\n',
        capture_output=True,
        timeout=30,
        check=False,
    )
    refused, stopped = map(json.loads, ended.stdout.splitlines())

    assert refused["type"] == "error"
    shown = repr((line + b"\n")[:100])
    assert refused["message"] == f"this line is no request: {shown}"
    assert stopped == {"type": "stopped"}
    assert b"Traceback" not in ended.stderr


def test_a_notice_answers_nothing(spawn: Spawn) -> None:
    """A notice may come before the answer to start, and the instance goes on."""
    instance = spawn("resets")

    assert isinstance(instance.start(START), Ready)
    said, at_s = instance.notices.get(timeout=5)
    assert (said.kind, said.topic, said.partition) == ("offset-reset", "a-input", 1)
    assert (said.begin, said.end) == (2, 5)
    assert at_s <= time.monotonic()
    assert instance.stop(1000) == Stopped()


def test_a_refusal_names_the_output(spawn: Spawn) -> None:
    """The fields of a loud stop go over the wire beside its message."""
    instance = spawn("refused")
    instance.start(START)

    until(lambda: instance.failed is not None)

    assert instance.failed == Failed(
        kind="refused", message="an output is too large", output="a-output"
    )


def test_protocol_1_has_no_notice(spawn: Spawn) -> None:
    """A design that says protocol 1 at hello may not use what version 2 has added."""
    instance = spawn("resets_in_protocol_1")

    with pytest.raises(AdapterBreach, match="Expected it to say protocol 2 at hello"):
        until(lambda: instance.start(START) is None)
