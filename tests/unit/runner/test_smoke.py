"""Each fault of a miniature design fails its own check of smoke.

No Kafka is started.
"""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from miniatures import manifest

from upheld.errors import UsageProblem
from upheld.runner import smoke as module
from upheld.runner.smoke import Check, Conversation, Site, Watch, conversations, count, smoke
from upheld.scaffold import new
from upheld.supervisor import instance
from upheld.supervisor.reaper import RunScope
from upheld.ui.console import PlainConsole
from upheld.ui.progress import Progress
from upheld.ui.timeleft import Mean

FOLLOWS = ["says hello", "starts", "answers its input with an output", "stops", "leaves nothing"]


class Broker:
    """A broker, a reader and a producer of smoke, none of them real."""

    bootstrap = "localhost:1"
    ours = True
    client: ClassVar[dict[str, str]] = {}
    settings: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        self.outputs: list[str] = ["one"]
        self.produced: list[str] = []
        self.topics: set[str] = set()

    def create(self, topics: dict[str, int]) -> None:
        """Remember the topics."""
        self.topics |= topics.keys()

    def reserve(self, _: str, *, groups_too: bool) -> None:
        """Take any id."""
        assert not groups_too

    def clear(self, _: str) -> None:
        """Forget the topics."""
        self.topics.clear()

    def partitions(self, _: str, __: float) -> int:
        """Give every topic two partitions."""
        return 2

    def records(self, *_: object, **__: object) -> list[str]:
        """Return what is visible of the output."""
        return self.outputs

    def produce(self, topic: str, *_: object, **__: object) -> None:
        """Remember where a record went."""
        self.produced.append(topic)

    def flush(self, _: float) -> None:
        """Have nothing to wait for."""

    def close(self) -> None:
        """Have nothing to close."""


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    """Return a broker on which an output is visible."""
    made = Broker()
    monkeypatch.setattr(module, "Reading", lambda *_: made)
    monkeypatch.setattr(module, "Producer", lambda _: made)
    monkeypatch.setattr(module, "STOP_MS", 300)
    return made


def checked(
    habit: str, broker: Any, folder: Path, time_scale: float = 1.0, **fields: object
) -> list[Check]:
    """Smoke a miniature."""
    with RunScope() as run:
        return smoke(manifest(habit, **fields), Site(broker, run, folder, time_scale))


def test_a_sound_adapter_passes_every_check(broker: Broker, tmp_path: Path) -> None:
    """One conversation has five checks; the input is written, and no topic is left."""
    checks = checked("well_behaved", broker, tmp_path)

    assert [(check.check, check.ok) for check in checks] == [
        (f"relay-at_least_once {each}", True) for each in FOLLOWS
    ]
    assert len(broker.produced) > 1
    assert broker.topics == set()


@pytest.mark.parametrize(
    ("habit", "check", "says"),
    [
        ("writes_prose", "keeps the protocol", "not JSON: "),
        ("boasts_of_a_program", "keeps the protocol", "at hello"),
        ("stops_late", "keeps the protocol", "did not answer stop within"),
    ],
)
def test_a_fault_fails_its_own_check(
    broker: Broker, tmp_path: Path, habit: str, check: str, says: str
) -> None:
    """The check says what was seen, and is the last one of its program.

    A later check would repeat it.
    """
    *before, last = checked(habit, broker, tmp_path, time_scale=0.1)

    assert all(each.ok for each in before)
    assert not last.ok
    assert last.check.endswith(check)
    assert says in last.text
    assert broker.topics == set()


def test_a_worker_that_is_left_is_told(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything else is sound, and the last check says what outlived the design."""
    # The worker keeps stdout open, so its end is not awaited for long.
    monkeypatch.setattr(instance, "_DRAIN_S", 0.1)

    *before, last = checked("leaves_a_worker", broker, tmp_path)

    assert [each.ok for each in before] == [True] * 4
    assert (last.ok, last.check) == (False, "relay-at_least_once leaves nothing")
    assert "outlived it" in last.text


def test_a_manifest_of_another_version_is_told(broker: Broker, tmp_path: Path) -> None:
    """A design that is judged has to be the one that its manifest names."""
    (check,) = checked("well_behaved", broker, tmp_path, version="2")

    assert (check.ok, check.check) == (False, "relay-at_least_once keeps the protocol")
    assert "says version 1 at hello" in check.text


def test_an_input_without_an_output_is_told(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline is scaled, and the sentence names it and the log."""
    broker.outputs = []
    monkeypatch.setattr(module, "OUTPUT_S", 3.0)

    last = checked("well_behaved", broker, tmp_path, time_scale=0.1)[-1]

    assert (last.ok, last.check) == (False, "relay-at_least_once answers its input with an output")
    assert last.text.startswith("none visible to read_committed in 0.3 s; see ")


def test_a_design_that_ends_before_its_output_is_told(broker: Broker, tmp_path: Path) -> None:
    """Its last words are in the sentence."""
    broker.outputs = []

    last = checked("fails_loudly", broker, tmp_path)[-1]

    assert not last.ok
    assert "another one took over" in last.text


TWICE = [Conversation("relay", "at_least_once")] * 2


@pytest.mark.parametrize(
    ("habit", "turns"),
    [
        ("sleeps_at_hello", 1),
        ("quits_at_hello", 1),
        ("well_behaved", 1),
        ("stops_late", 1),
        ("fails_loudly", 2),
    ],
)
def test_a_silence_ends_all_turns(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, habit: str, turns: int
) -> None:
    """A deadline that passed would pass again; a loud end may be that of one program."""
    broker.outputs = ["one"] if habit == "stops_late" else []
    if turns == 1:  # a loud end has to come before its deadline, however slow the machine is
        monkeypatch.setattr(instance, "HELLO_S", 3.0)
        monkeypatch.setattr(module, "OUTPUT_S", 3.0)
    said = io.StringIO()
    with RunScope() as run, Progress(PlainConsole(file=said)) as progress:
        found = smoke(
            manifest(habit),
            Site(broker, run, tmp_path, 0.1),  # type: ignore[arg-type]
            Watch("m", progress, Mean(count(TWICE))),
            TWICE,
        )

    assert [each.ok for each in found].count(False) == turns
    left_out = "m: not asked after that: relay-at_least_once; --program and --mode ask for one"
    assert (left_out in said.getvalue()) == (turns == 1)


def test_a_failed_check_shows_the_last_lines_of_the_log(broker: Broker, tmp_path: Path) -> None:
    """They mostly say why, and no file has to be opened."""
    said = io.StringIO()
    with RunScope() as run, Progress(PlainConsole(file=said)) as progress:
        (check,) = smoke(
            manifest("quits_at_hello"),
            Site(broker, run, tmp_path),  # type: ignore[arg-type]
            Watch("m", progress, Mean(len(FOLLOWS))),
        )

    assert check.log == ("no runtime on this machine",)
    assert "  log  no runtime on this machine\n" in said.getvalue()


def test_conversations_are_narrowed() -> None:
    """Programs and modes that are not named are left out; none is all."""
    both = manifest("well_behaved", programs=["relay", "ledger"], modes=["exactly_once"])

    assert conversations(both, ["ledger"]) == [("ledger", "exactly_once")]
    assert conversations(both, modes=["at_least_once"]) == []
    assert len(conversations(both)) == 2


def test_a_program_that_nobody_knows_is_told(broker: Broker, tmp_path: Path) -> None:
    """The known ones are listed, and nothing is started."""
    unknown: Any = SimpleNamespace(programs=["relax"], modes=["exactly_once"])
    nothing: Any = SimpleNamespace()

    (check,) = smoke(unknown, Site(broker, nothing, tmp_path))

    assert not check.ok
    assert check.text.startswith("there is no program relax; known are relay, ")


def test_new_writes_over_nobodys_files(tmp_path: Path) -> None:
    """A folder with a file, or one that cannot be made, is refused in one sentence."""
    (tmp_path / "mine.txt").touch()

    with pytest.raises(UsageProblem, match="is not empty; name a new directory"):
        new(tmp_path)
    with pytest.raises(UsageProblem, match=r"cannot be written: .* name a new directory"):
        new(tmp_path / "mine.txt" / "below")
