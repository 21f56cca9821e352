"""Every reader takes inputs that nobody would write; failing ones are kept."""

import random
import subprocess
import sys
import time
from pathlib import Path

import fuzz
import pytest
from fuzzing.outputs import outputs
from hypothesis import example, given
from hypothesis import strategies as st

HANGING = """
import signal, time
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""
TARGETS = [path.stem for path in (fuzz.TOOLS / "fuzzing").glob("*.py") if path.stem[0] != "_"]


def crashing(data: bytes) -> None:
    """Fail if there is an x in the input."""
    if b"x" in data:
        raise ValueError(data.decode())


@pytest.mark.parametrize("name", TARGETS)
def test_each_target_takes_what_it_begins_with(name: str) -> None:
    """No input that a target begins with fails."""
    target = fuzz.target_of(name)

    for data in target.seeds:
        target.read(data)


@pytest.mark.parametrize("name", TARGETS)
@given(seed=st.integers(0, 1 << 32))
@example(seed=0)
def test_each_target_takes_changed_inputs(name: str, seed: int) -> None:
    """No input fails that is changed as the tool changes it."""
    target = fuzz.target_of(name)
    chance = random.Random(seed)

    target.read(fuzz.changed(chance.choice(target.seeds), chance, target))


def test_a_refusal_may_have_the_spaces_of_any_language() -> None:
    """A space of another width, as in the name of a design, is no control character."""
    fuzz.target_of("manifest").read('extends = "\u2000"'.encode())


@pytest.mark.parametrize("value", [b"", b"\xff", b"null", b"{}", b"[]", b"1", b"[" * 10_000])
def test_an_unreadable_output_beside_other_anomalies(value: bytes) -> None:
    """A check that shows an output of no contract names it, and ends in no traceback."""
    outputs(value)


def test_a_failing_input_is_kept_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind of failure is told once, with the command that repeats it."""
    target = fuzz.Target("crashing", crashing, (b"",), ())
    current = fuzz.Current(tmp_path / "current")
    feeder = fuzz.Feeder(target, tmp_path, current, time.monotonic() + 60)

    for data in (b"fine", b"a long input with an x in it", b"another x"):
        feeder.feed(data)
    (kept,) = (path for path in tmp_path.iterdir() if path.name != "current")

    assert kept.read_bytes() == b"x"
    assert current.data == b"another x"
    told = capsys.readouterr().out
    assert told.count(f"python tools/fuzz.py crashing --input {kept}") == 1


def test_a_leak_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reader that leaves a file open with each input is told of once."""
    left = []
    target = fuzz.Target("leaking", lambda _: left.append((tmp_path / "a").open("wb")), (b"",), ())
    feeder = fuzz.Feeder(target, tmp_path, fuzz.Current(tmp_path / "c"), time.monotonic() + 60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fuzz, "LOOK_EVERY", 10)
        patch.setattr(fuzz, "WARM", 20)
        for _ in range(60):
            feeder.feed(b"")
    for file in left:
        file.close()

    assert capsys.readouterr().out.count("leaking leaks: ") == 1
    assert feeder.fallen == {"leak"}


def test_an_input_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that takes too long for one input is killed from outside."""
    monkeypatch.setattr(fuzz, "HANG_S", 0.3)
    current = fuzz.Current(tmp_path / "current")
    current.put(b"slow")
    with subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()  # from now on it ignores the signal

        assert fuzz._watched(worker, current) == -9
    assert current.data == b"slow"
