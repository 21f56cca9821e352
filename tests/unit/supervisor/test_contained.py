"""A process stands for a container among the processes of an instance."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from engines import Engine

from upheld.supervisor import contained
from upheld.supervisor.contained import KILL, KILLED, NOT_STARTED, Contained, Mount, run

TAG = f"of-a-container-{os.getpid()}"  # other tests run beside these, and strike by such a tag
# It stands for a container that runs until it gets a signal, and ends with the signal's number.
STANDS = """
import json, sys, threading
sys.path.insert(0, sys.argv[1])
from engines import Engine
from upheld.supervisor import contained

class Runs(Engine):
    ended = threading.Event()
    def kill(self, container, name):
        print(f"{container} {name}\\n", end="", flush=True)  # at once: the log is passed on, too
        self.ended.set()
    def wait(self, container):
        self.ended.wait()
        return {"StatusCode": 3}

contained.client = lambda *_: Runs()
sys.exit(contained.main(contained.Path(sys.argv[2])))
"""


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Return an engine, and let this process be of a run and of an instance."""
    made = Engine()
    monkeypatch.setattr(contained, "client", lambda *_: made)
    monkeypatch.setattr(contained, "_hand_on", lambda _: None)
    monkeypatch.setenv("UPHELD_RUN", "0123456789ab")
    monkeypatch.setenv("UPHELD_INSTANCE", TAG)
    return made


def of(folder: Path) -> Contained:
    """Return a container with one folder to write, and one to read."""
    mounts = (
        Mount(str(folder), "/data", is_read_only=False),
        Mount("/etc", "/conf", is_read_only=True),
    )
    return Contained("shop/orders:4", ("--serve",), {"A": "b"}, mounts)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """The command that it is started by names the file."""
    command = of(tmp_path).write(tmp_path / "app.json")

    assert command[-2:] == ("upheld.supervisor.contained", str(tmp_path / "app.json"))
    assert Contained.read(tmp_path / "app.json") == of(tmp_path)


def test_its_log_and_its_exit_code_are_those_of_the_container(
    engine: Engine, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """It listens before the container starts, and nothing of the container is left."""
    assert run(of(tmp_path)) == 7
    assert capfdbinary.readouterr().out == b"up\nbye\n"
    assert [what for what, _ in engine.asked] == ["create", "attach", "start", "wait", "remove"]


def test_a_container_stands_in_the_network_of_the_machine(engine: Engine, tmp_path: Path) -> None:
    """Its labels say whose it is; its entrypoint is the image's."""
    run(of(tmp_path))
    host = engine.made["host_config"]

    assert (engine.made["image"], engine.made["command"]) == ("shop/orders:4", ["--serve"])
    assert engine.made["labels"] == {"upheld.run": "0123456789ab", "upheld.instance": TAG}
    assert engine.made["environment"] == {"A": "b"}
    assert host["network_mode"] == "host"
    assert [(each["Source"], each["Target"], each["ReadOnly"]) for each in host["mounts"]] == [
        (str(tmp_path), "/data", False),
        ("/etc", "/conf", True),
    ]


@pytest.mark.parametrize(("user", "named"), [(0, None), (1000, f"1000:{os.getegid()}")])
def test_files_that_a_container_leaves_can_be_removed(
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    user: int,
    named: str | None,
) -> None:
    """Root can remove all of them; another user's container has that user."""
    tmp_path.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    run(of(tmp_path))

    assert engine.made["user"] == named
    assert tmp_path.stat().st_mode & 0o777 == (0o700 if user else 0o777)


@pytest.mark.parametrize("refused", ["create", "start"])
def test_an_engine_that_refuses_is_told(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: str
) -> None:
    """The sentence is the last word of the process."""
    engine.refused[refused] = 500

    assert run(of(tmp_path)) == NOT_STARTED
    assert capsys.readouterr().out == (
        f"the container of shop/orders:4 does not start ({refused} is refused)\n"
    )


def test_a_container_that_was_removed_was_killed(engine: Engine, tmp_path: Path) -> None:
    """The engine has no exit code of it any more."""
    engine.refused["wait"] = 404

    assert run(of(tmp_path)) == KILLED


@pytest.mark.parametrize(
    ("sent", "handed_on"),
    [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT"), (KILL, "SIGKILL")],
)
def test_signals_are_handed_on(tmp_path: Path, sent: signal.Signals, handed_on: str) -> None:
    """A kill has a signal of its own: this process can hand on no SIGKILL."""
    of(tmp_path).write(tmp_path / "app.json")
    support = str(Path(__file__).parents[2] / "support")
    own = os.environ | {"UPHELD_RUN": "0123456789ab", "UPHELD_INSTANCE": TAG}
    with subprocess.Popen(
        [sys.executable, "-c", STANDS, support, str(tmp_path / "app.json")],
        stdout=subprocess.PIPE,
        text=True,
        env=own,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        process.send_signal(sent)
        rest = process.stdout.read()

    assert process.returncode == 3
    assert sorted(rest.splitlines()) == ["bye", f"made {handed_on}"]


def test_a_file_has_fields_by_name(tmp_path: Path) -> None:
    """So that a person who looks for a mistake can read it."""
    of(tmp_path).write(tmp_path / "app.json")

    assert json.loads((tmp_path / "app.json").read_text())["image"] == "shop/orders:4"
