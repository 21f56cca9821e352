"""The process that stands for a container among the processes of an instance.

It starts the container, passes its log on, hands it the signals that it gets itself, and ends with
its exit code. So whatever starts and stops the processes of an application does the same with its
containers.

This process cannot hand a SIGKILL on, since it dies of one. So a strike on an instance reaches its
containers through the engine, by their label.
"""

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from upheld import commands
from upheld.masking import private
from upheld.supervisor.containers import (
    ENGINE_S,
    INSTANCE_LABEL,
    client,
    engine_errors,
    first_line,
)
from upheld.supervisor.reaper import RUN_LABEL, RUN_VARIABLE
from upheld.supervisor.session import INSTANCE_TAG

KILL: Final = signal.SIGUSR1  # to this process: the container is killed
# A signal to this process -> the one that the container gets.
PASSED_ON: Final = {
    signal.SIGTERM: signal.SIGTERM,
    signal.SIGINT: signal.SIGINT,
    KILL: signal.SIGKILL,
}
NOT_STARTED: Final = 125  # the exit code of `docker run` where the engine refuses
KILLED: Final = commands.BY_SIGNAL + signal.SIGKILL
MODULE: Final = "upheld.supervisor.contained"
EVERYBODY: Final = 0o777


@dataclass(frozen=True)
class Mount:
    """A folder or a file of this machine, and where it stands in the container."""

    source: str
    target: str
    is_read_only: bool


@dataclass(frozen=True)
class Contained:
    """A container, as it is started."""

    image: str
    command: tuple[str, ...]
    environment: dict[str, str]
    mounts: tuple[Mount, ...]

    def write(self, file: Path) -> tuple[str, ...]:
        """Write this to a file, and return the command that starts it.

        The file may hold passwords.
        """
        with open(file, "w", opener=private) as written:
            json.dump(asdict(self), written)
        return tuple(commands.own_module(MODULE, str(file)))

    @classmethod
    def read(cls, file: Path) -> "Contained":
        """Return what was written to a file."""
        fields = json.loads(file.read_text())
        return cls(
            fields["image"],
            tuple(fields["command"]),
            fields["environment"],
            tuple(Mount(**each) for each in fields["mounts"]),
        )


def run(contained: Contained) -> int:
    """Run a container to its end, and return its exit code."""
    try:
        engine = client()
        container = _made(engine, contained)
        log = engine.attach(container, stream=True)
        engine.start(container)
    except engine_errors() as failure:
        print(f"the container of {contained.image} does not start ({first_line(failure)})")
        return NOT_STARTED
    threading.Thread(target=_hand_on, args=(container,), daemon=True).start()
    _pass_on(log)
    try:
        code = int(engine.wait(container)["StatusCode"])
    except engine_errors():  # it was removed by what struck the instance
        return KILLED
    with contextlib.suppress(*engine_errors()):
        engine.remove_container(container, v=True, force=True)
    return code


def _made(engine: Any, contained: Contained) -> str:
    """Make a container with the labels of its run and of its instance; return its id."""
    from docker.types import LogConfig
    from docker.types import Mount as Bound

    is_root = os.geteuid() == 0
    if is_root:
        _open_to_all(contained.mounts)
    return str(
        engine.create_container(
            contained.image,
            list(contained.command) or None,
            environment=contained.environment,
            # Files that it leaves have to be removed by the harness.
            user=None if is_root else f"{os.geteuid()}:{os.getegid()}",
            labels={
                RUN_LABEL: os.environ[RUN_VARIABLE],
                INSTANCE_LABEL: os.environ[INSTANCE_TAG],
            },
            host_config=engine.create_host_config(
                network_mode="host",
                log_config=LogConfig(type="none"),  # the harness keeps it
                mounts=[
                    Bound(each.target, each.source, type="bind", read_only=each.is_read_only)
                    for each in contained.mounts
                ],
            ),
        )["Id"]
    )


def _open_to_all(mounts: Iterable[Mount]) -> None:
    """Let every user of a container write its folders; they lie in a folder of the run's own."""
    for each in mounts:
        if not each.is_read_only:
            Path(each.source).chmod(EVERYBODY)


def _hand_on(container: str) -> None:
    """Hand each signal on; a container that has ended needs none."""
    engine = client(ENGINE_S)
    while True:
        number = signal.Signals(signal.sigwait(PASSED_ON))
        with contextlib.suppress(*engine_errors()):
            engine.kill(container, PASSED_ON[number].name)


def _pass_on(log: Iterable[bytes]) -> None:
    """Write a log to standard output as it comes."""
    for piece in log:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def main(file: Path) -> int:
    """Run the container that a file describes."""
    # Before it runs, they wait: its thread takes them later.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    return run(Contained.read(file))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
