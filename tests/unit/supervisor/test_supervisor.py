"""An adapter that misbehaves ends in the right exception, in time.

The message says what to mend.
"""

import os
import re
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from miniatures import MINIATURES, START, Run, Spawn, manifest, until

from upheld.errors import UsageProblem
from upheld.masking import KNOWN
from upheld.protocol.messages import Failed, Ready, Stopped
from upheld.supervisor import instance as instances
from upheld.supervisor.environment import prepare
from upheld.supervisor.instance import Instance, Options, Silence
from upheld.supervisor.pool import Pool
from upheld.supervisor.secrets import shown
from upheld.verdicts import AdapterBreach

MESSAGES = tomllib.loads((MINIATURES / "messages.toml").read_text())
HELLO_HABITS = [
    "sleeps_at_hello",
    "stops_in_mid_line",
    "quits_at_hello",
    "writes_prose",
    "misspells_a_field",
    "comes_from_the_future",
    "boasts_of_a_program",
    "boasts_of_a_capability",
    "never_ends_its_line",
]
START_HABITS = [
    "answers_another_question",
    "sleeps_at_start",
    "spills_the_password",
    "is_killed_at_start",
]
SILENT = {
    "sleeps_at_hello",
    "stops_in_mid_line",
    "quits_at_hello",
    "sleeps_at_start",
    "is_killed_at_start",
}


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Spawn miniatures by their habit, and end them with the test."""
    spawned = []

    def of(habit: str, time_scale: float = 1.0) -> Instance:
        instance = Instance(
            manifest(habit), Run(), tmp_path, Options(name="it", time_scale=time_scale)
        )
        spawned.append(instance)
        return instance

    yield of
    for instance in spawned:
        instance.kill()


def message(breach: AdapterBreach, instance: Instance) -> str:
    """Return the text of a breach without what differs from run to run."""
    text = (
        str(breach)
        .replace(str(instance.stderr_path), "LOG")
        .replace(str(instance.manifest.file), "FILE")
    )
    return re.sub(
        r"within [\d.]+ s|for [\d.]+ s", lambda found: re.sub(r"[\d.]+", "N", found[0]), text
    )


@pytest.mark.parametrize("habit", HELLO_HABITS)
def test_breach_at_hello(habit: str, spawn: Spawn) -> None:
    """A bad answer to hello, or none, is a breach within the deadline.

    It says what to mend.
    """
    began = time.monotonic()
    instance = spawn(habit, time_scale=0.01 if habit in SILENT else 1.0)

    with pytest.raises(AdapterBreach) as breach:
        instance.greet()

    assert time.monotonic() - began < 3
    assert message(breach.value, instance) == MESSAGES[habit]
    assert isinstance(breach.value, Silence) == (habit in SILENT)


@pytest.mark.parametrize("habit", START_HABITS)
def test_breach_at_start(habit: str, spawn: Spawn) -> None:
    """A bad answer to start, or none, is a breach within the deadline.

    No secret is repeated.
    """
    instance = spawn(habit)
    instance.greet()
    instance.time_scale = 0.01 if habit == "sleeps_at_start" else 1.0

    with pytest.raises(AdapterBreach) as breach:
        instance.start(START)

    assert message(breach.value, instance) == MESSAGES[habit]
    assert isinstance(breach.value, Silence) == (habit in SILENT)


@pytest.mark.parametrize("habit", ["answers_twice", "chatters"])
def test_breach_unasked(habit: str, spawn: Spawn) -> None:
    """A message out of turn is a breach, met by the next request.

    A flood is held still.
    """
    instance = spawn(habit)
    instance.greet()
    until(lambda: instance.breach is not None)

    with pytest.raises(AdapterBreach) as breach:
        instance.start(START)

    assert message(breach.value, instance) == MESSAGES[habit]
    assert instance.exit_code is None


@pytest.mark.parametrize("password", ["failed", "fenced", "message", '","', '"type"', "ready"])
def test_a_password_that_is_a_word_of_the_protocol(password: str, spawn: Spawn) -> None:
    """Messages mean the same, whatever the secrets are."""
    instance = spawn("fails_loudly")
    instance.greet()

    instance.start(START.model_copy(update={"client": {"sasl.password": password}}))
    until(lambda: instance.is_over)

    assert instance.failed
    assert instance.failed.kind == "fenced"


def test_a_password_in_the_prose_of_a_message(spawn: Spawn) -> None:
    """The history keeps the message, and so it holds no secret."""
    instance = spawn("fails_loudly")
    instance.greet()

    instance.start(START.model_copy(update={"client": {"sasl.password": "another one"}}))
    until(lambda: instance.is_over)

    assert instance.failed == Failed(kind="fenced", message="*** took over")


def test_a_secret_at_the_edge_of_what_a_message_shows() -> None:
    """A line is masked before it is shortened, so no half of a secret is left."""
    KNOWN.learn("sasl.password", "hunter2-hunter2")

    for before in range(140, 165):
        assert "hunt" not in shown(b"x" * before + b"hunter2-hunter2" + b"y" * 5000)


def test_breach_sticks(spawn: Spawn) -> None:
    """After a breach every request meets the same one.

    It does, though the adapter goes on answering.
    """
    instance = spawn("answers_another_question")
    instance.greet()

    with pytest.raises(AdapterBreach) as first:
        instance.start(START)
    with pytest.raises(AdapterBreach) as second:
        instance.stop(1000)

    assert second.value is first.value


@pytest.mark.parametrize("habit", ["stops_late", "stays_after_stopped"])
def test_breach_at_stop(habit: str, spawn: Spawn) -> None:
    """A late `stopped`, or one that no exit follows, is a breach."""
    instance = spawn(habit)
    instance.greet()
    instance.start(START)
    instance.time_scale = 0.04

    with pytest.raises(Silence) as breach:
        instance.stop(1000)

    assert message(breach.value, instance) == MESSAGES[habit]


def test_proper_conversation(spawn: Spawn) -> None:
    """A miniature without a bad habit is greeted, started and stopped.

    It exits 0 and leaves nothing.
    """
    instance = spawn("well_behaved")

    assert instance.greet().name == "miniature"
    assert instance.start(START) == Ready(consumer_group="g")
    assert instance.stop(1000) == Stopped()
    assert instance.exit_code == 0
    assert (instance.survivors, instance.pids()) == ([], [])


def test_loud_stop(spawn: Spawn) -> None:
    """An unasked `failed` is kept, is no breach, and answers any later request."""
    instance = spawn("fails_loudly")
    instance.greet()
    instance.start(START)

    until(lambda: instance.failed is not None)

    assert instance.wait_exit(5) == 1
    assert instance.failed == Failed(kind="fenced", message="another one took over")
    assert instance.stop(1000) == instance.failed
    assert instance.breach is None


def test_last_words_are_heard(spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    """A harness that sees an ended instance knows its last message by then.

    It does, however late that message is read.
    """
    hear = Instance._take

    def late(self: Instance, line: bytes) -> None:
        time.sleep(0.5)
        hear(self, line)

    instance = spawn("fails_loudly")
    instance.greet()
    instance.start(START)
    monkeypatch.setattr(Instance, "_take", late)

    until(lambda: instance.exit_code is not None)

    assert instance.failed


def test_survivors_are_named(spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker in a session of its own is found after stop, killed and listed."""
    # The worker keeps stdout open, so its end is not awaited for long.
    monkeypatch.setattr(instances, "_DRAIN_S", 0.1)
    instance = spawn("leaves_a_worker")
    instance.greet()
    instance.start(START)
    worker = set(instance.pids()) - {instance._process.pid}

    instance.stop(1000)

    assert len(worker) == 1
    assert set(instance.survivors) == worker
    assert not _alive(worker.pop())


def test_pause_takes_every_process(spawn: Spawn) -> None:
    """Pause stops the worker outside the session too, and resume wakes it.

    A paused instance can be killed.
    """
    instance = spawn("leaves_a_worker")
    instance.greet()
    instance.start(START)
    everyone = instance.pids()

    assert instance.pause() == everyone
    assert {_state(pid) for pid in everyone} == {"T"}
    assert instance.resume() == everyone
    until(lambda: "T" not in {_state(pid) for pid in everyone})
    instance.pause()
    assert instance.kill() == everyone
    assert not any(map(_alive, everyone))
    assert instance.exit_code == -9
    assert (instance.kill(), instance.pause(), instance.pids()) == ([], [], [])


def test_stdin_end_is_the_end(spawn: Spawn) -> None:
    """A design whose harness has gone sees its standard input end, and exits."""
    instance = spawn("well_behaved")
    instance.greet()

    instance._hang_up()

    assert instance.wait_exit(5) == 0


def test_pool_boots_what_is_asked_for(tmp_path: Path) -> None:
    """One instance is booted at the beginning, and one more when it is prepared.

    Asking twice is the same as asking once, and close ends all.
    """
    pool = Pool(manifest("well_behaved"), Run(), tmp_path)

    first = pool.take()
    pool.prepare()
    pool.prepare()
    second = pool.take()
    booted = len(list(tmp_path.glob("*.stderr")))
    pool.close()

    assert booted == 2

    assert first is not second
    assert first.hello
    assert second.hello
    assert (first.exit_code, second.exit_code) == (-9, -9)


def test_pool_prefers_what_was_given_back(tmp_path: Path) -> None:
    """A reusable instance that was given back is taken before a fresh one.

    Any other is ended.
    """
    reusable = Pool(
        manifest("boasts_of_a_capability", capabilities=["query", "reusable"]),
        Run(),
        tmp_path / "a",
    )
    with pytest.raises(AdapterBreach, match="says capabilities"):
        reusable.take()
    reusable.close()
    ordinary = Pool(manifest("well_behaved"), Run(), tmp_path / "b")
    used = ordinary.take()
    ordinary.give_back(used)
    ordinary.close()
    pool = Pool(manifest("is_reusable", capabilities=["reusable"]), Run(), tmp_path / "c")
    first = pool.take()
    first.start(START)
    first.stop(1000)
    pool.give_back(first)
    again = pool.take()
    pool.close()

    assert used.exit_code == -9
    assert again is first


def test_pool_raises_the_breach_of_a_boot(tmp_path: Path) -> None:
    """A design that cannot boot says so when it is taken, each time."""
    pool = Pool(manifest("quits_at_hello"), Run(), tmp_path)

    for _ in range(2):
        with pytest.raises(Silence, match="no runtime on this machine"):
            pool.take()

    pool.close()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return _state(pid) not in "ZX"


def test_prepare_runs_to_its_end(tmp_path: Path) -> None:
    """A design's preparation ends before its first instance, and its output is kept."""
    design = manifest(
        "", prepare=[sys.executable, "-c", f"print('built'); open('{tmp_path}/built', 'w')"]
    )

    prepare(design, Run(), tmp_path)

    assert (tmp_path / "built").exists()
    assert (tmp_path / "miniature-prepare.txt").read_text() == "built\n"


def test_prepare_has_to_build_the_program(tmp_path: Path) -> None:
    """A program of the design's own folder that is missing afterwards is named."""
    design = manifest("", prepare=[sys.executable, "-c", ""]).model_copy(
        update={"command": ("./relay",)}
    )

    with pytest.raises(UsageProblem, match=r"`command` starts with \./relay, which"):
        prepare(design, Run(), tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"environment": {"A\0B": "x"}},
        {"environment": {"A": "x\0y"}},
        {"environment": {"A=B": "x"}},
        {"environment": {"A": "x" * (1 << 20)}},
        {"prepare": (sys.executable, "a\0b"), "command": (sys.executable, "a\0b")},
        {
            "prepare": (sys.executable, "x" * (1 << 20)),
            "command": (sys.executable, "x" * (1 << 20)),
        },
        {"prepare": ("/nowhere/python",), "command": ("/nowhere/python",)},
        {"prepare": ("/",), "command": ("/",)},
    ],
    ids=str,
)
def test_a_process_that_cannot_be_spawned_is_no_fault_of_ours(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    """Names and texts that the system refuses are said with the field of the manifest."""
    plain = manifest("", prepare=[sys.executable, "-c", ""])
    odd = plain.model_copy(update=change)

    with pytest.raises(UsageProblem, match=r"`prepare` cannot be run \("):
        prepare(odd, Run(), tmp_path)
    with pytest.raises(AdapterBreach, match=r"cannot be run \(.*see `command` and `environment`"):
        Instance(odd, Run(), tmp_path)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit(3)", "ended with exit code 3"),
        ("input_ = open(0).read()\nwhile True: pass", "did not end"),
    ],
)
def test_prepare_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    """A preparation that fails or has no end ends the run before it begins.

    The sentence names its log.
    """
    monkeypatch.setattr("upheld.supervisor.environment.PREPARE_S", 0.5)

    with pytest.raises(UsageProblem, match=f"`prepare` {says}.*miniature-prepare.txt says why"):
        prepare(manifest("", prepare=[sys.executable, "-c", script]), Run(), tmp_path)
