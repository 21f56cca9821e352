"""Hostile lines on standard output are breaches, and the harness goes on."""

import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from miniatures import Run, manifest

from upheld.supervisor import instance as instances
from upheld.supervisor.instance import Instance, Options
from upheld.verdicts import AdapterBreach

ANSWERED = "answered hello with"
# What is written in answer to hello, as a Python expression of bytes -> what the breach says.
LINES = {
    "deep": (
        r"b'{\"type\": \"hello\", \"a\": ' + b'[' * 100_000 + b']' * 100_000 + b'}\n'",
        "answered hello with",
    ),
    "deep-and-open": (r"b'[' * 100_000 + b'\n'", ANSWERED),
    "deep-objects": (r"b'{\"a\":' * 50_000 + b'1' + b'}' * 50_000 + b'\n'", ANSWERED),
    "huge-number": (
        r"b'{\"type\": \"hello\", \"protocol\": ' + b'9' * 6_000 + b'}\n'",
        "answered hello with",
    ),
    "huge-exponent": (r"b'{\"type\": \"hello\", \"protocol\": 1e400}\n'", ANSWERED),
    "nan": (r"b'{\"type\": \"hello\", \"protocol\": NaN}\n'", ANSWERED),
    "not-utf-8": (r"b'\xff\xfe\x80{}\n'", "not JSON"),
    "nul": (r"b'\0\0\0\n'", "not JSON"),
    "lone-surrogate": (r"b'{\"type\": \"\\ud800\"}\n'", ANSWERED),
    "two-of-a-key": (r"b'{\"type\": \"stop\", \"type\": \"stopped\"}\n'", ANSWERED),
    "a-number": (r"b'7\n'", "no message of the protocol"),
    "a-list": (r"b'[]\n'", "no message of the protocol"),
    "null": (r"b'null\n'", "no message of the protocol"),
    "empty": (r"b'\n'", "not JSON"),
    "carriage-returns": (r"b'\r\r\r\n'", "not JSON"),
    "escapes": (r"b'\x1b[2J\x1b]0;x\x07\n'", "not JSON"),
    "long": (r"b'x' * (3 << 20) + b'\n'", "a line of more than 1048576 bytes"),
    "without-end": (r"b'x' * (3 << 20)", "a line of more than 1048576 bytes"),
    "many": (r"b'{}\n' * 20_000", "no message of the protocol"),
    "another-answer": (r"b'{\"type\": \"stopped\"}\n'", ANSWERED),
}


@pytest.fixture
def spawned(tmp_path: Path) -> Iterator[list[Instance]]:
    """Yield a list of instances, which end with the test."""
    made: list[Instance] = []
    yield made
    for instance in made:
        instance.kill()


def instance_of(script: str, folder: Path) -> Instance:
    """Start a script as a design, with deadlines of a tenth."""
    design = manifest("", command=[sys.executable, "-I", "-S", "-c", textwrap.dedent(script)])
    return Instance(design, Run(), folder, Options(name="it", time_scale=0.1))


@pytest.mark.parametrize(("written", "says"), LINES.values(), ids=LINES)
def test_a_line_is_a_breach_at_once(
    written: str, says: str, tmp_path: Path, spawned: list[Instance]
) -> None:
    """The sentence is short, can be printed, and comes long before the deadline."""
    script = f"""
        import sys, time
        sys.stdin.readline()
        sys.stdout.buffer.write({written})
        sys.stdout.buffer.flush()
        time.sleep(600)
    """
    spawned.append(instance_of(script, tmp_path))
    began = time.monotonic()

    with pytest.raises(AdapterBreach, match=says) as breach:
        spawned[0].greet()

    assert time.monotonic() - began < 4
    assert str(breach.value).isprintable()
    assert len(str(breach.value)) < 1_000


def test_a_closed_output_is_not_waited_for(
    tmp_path: Path, spawned: list[Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer can come any more, so the breach comes before the deadline."""
    monkeypatch.setattr(instances, "CLOSED_S", 0.2)
    spawned.append(instance_of("import os, time; os.close(1); time.sleep(600)", tmp_path))

    with pytest.raises(AdapterBreach, match="closed its stdout before it answered hello"):
        spawned[0].greet()


def test_a_listener_that_dies_is_heard(
    tmp_path: Path, spawned: list[Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception of ours ends the request, and is no silence of the design."""

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Instance, "_take", fails)
    spawned.append(instance_of("print('{}', flush=True); input(); input()", tmp_path))

    with pytest.raises(ZeroDivisionError):
        spawned[0].greet()
