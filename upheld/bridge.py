"""The adapter of an application that has none.

It reads the application's `design.toml`, starts its process, and answers the harness in its place.
The process knows nothing of it. Command and environment tell it its names, and a signal ends it. It
is in the session of this process, so that whatever strikes an instance strikes both.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription

from upheld.adapter import Design, Message, error, serve
from upheld.commands import PYTHON, filled
from upheld.reading import read_toml
from upheld.supervisor import deployed

LOG: Final = "log:"  # before the regular expression that a line of the log matches
LOOK_S: Final = 0.05
DESCRIBE_S: Final = 5.0
AGAIN_S: Final = 0.2  # a process that ends at once is not started without a pause
TOLD_LINES: Final = 5  # of its log, if it does not start


class Bridge(Design):
    """One process of an application, and the answers in its place."""

    def __init__(self, file: Path) -> None:
        self.folder = file.parent
        self.tables: dict[str, Any] = read_toml(file)
        signals = self.tables.get("signals", {})
        self.ready: str = signals.get("ready", "group")
        self.stop_signal = signal.Signals[signals.get("stop", "SIGTERM")]
        self.start_s: float = signals.get("start_s", 50)
        self.restarts = self.tables.get("restart", "never") == "on-exit"
        self.lines: list[str] = []
        self.process: subprocess.Popen[str] | None = None

    def introduce(self, programs: Iterable[str]) -> None:
        """Say of the application what its file says of it."""
        self.hello = {
            "name": self.tables["name"],
            "version": str(self.tables["version"]),
            "language": "any",
            "programs": list(programs),
            "modes": self.tables["modes"],
            "capabilities": self.tables.get("capabilities", []),
        }

    def open(self, start: Message) -> Message:
        """Start the process, and wait until it says that it is ready."""
        names = self._names(start)
        self.group: str | None = None
        if "group" in self.tables:
            self.group = filled(self.tables["group"], names)
        internal = [filled(each, names) for each in self.tables.get("internal_topics", ())]
        (process,) = self.tables["process"].values()
        self.command = [filled(each, names) for each in process["command"]]
        own = process.get("environment", {})
        given = {name: value for name, value in os.environ.items() if self._reaches(name)}
        self.environment = given | {name: filled(own[name], names) for name in own}
        deployed.render(process, names)
        is_ready = self._readiness(start, names)
        self._spawn()
        until = time.monotonic() + self.start_s
        while not is_ready():
            assert self.process
            if (code := self.process.poll()) is not None:
                return error(f"it ended with {code} before it was ready: {self._last_words()}")
            if time.monotonic() > until:
                return error(
                    f"it was not ready by {self.ready} in {self.start_s:g} s: {self._last_words()}"
                )
            time.sleep(LOOK_S)
        ready = {"internal_topics": internal}
        return ready if self.group is None else ready | {"consumer_group": self.group}

    def run(self, stopping: threading.Event) -> None:
        """Wait for the end, and start a process anew if its supervisor would."""
        assert self.process
        while not stopping.wait(LOOK_S):
            code = self.process.poll()
            if code is None:
                continue
            if not self.restarts:
                print(f"the application has ended with {code}", file=sys.stderr, flush=True)
                os._exit(code & 0xFF or 1)
            if stopping.wait(AGAIN_S):
                return
            self._spawn()
            self.notice("recovered")
        self.process.send_signal(self.stop_signal)
        self.process.wait()

    def _names(self, start: Message) -> dict[str, str]:
        """Return what is filled in for each placeholder."""
        topics = start["topics"]
        names = {f"input.{name}": topics[name] for name in self.tables["input"]}
        names |= {f"output.{name}": topics[name] for name in self.tables["output"]}
        for name in ("bootstrap", "application_id", "instance", "state_dir", "durable_dir"):
            names[name] = start[name]
        for name in ("session_timeout_ms", "transaction_timeout_ms"):
            names[name] = str(start[name])
        names["commit_interval_ms"] = str(start["parameters"].get("commit_interval_ms", 100))
        return names | {
            "mode": start.get("mode") or "at_least_once",
            "dir": str(self.folder),
            "python": PYTHON,
            "tmp_dir": tempfile.gettempdir(),
            **deployed.places(Path(tempfile.mkdtemp(prefix="upheld-rendered-"))),
        }

    def _reaches(self, name: str) -> bool:
        """Return whether a variable is for the application too, and not for this process alone."""
        inherited = (*self.tables.get("inherit", ()), *self.tables.get("secrets", ()))
        return name != "PYTHONPATH" or name in inherited

    def _spawn(self) -> None:
        self.lines = []
        self.process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert self.process.stdout
        reader = threading.Thread(target=self._hear, args=(self.process.stdout,), daemon=True)
        reader.start()

    def _hear(self, log: IO[str]) -> None:
        """Keep the last lines of the application, and pass all of them on."""
        for line in log:
            self.lines.append(line.rstrip("\n"))
            del self.lines[:-200]
            print(line, end="", file=sys.stderr, flush=True)

    def _last_words(self) -> str:
        return " / ".join(deployed.last_words(self.lines, TOLD_LINES)) or "its log is empty"

    def _readiness(self, start: Message, names: dict[str, str]) -> Callable[[], bool]:
        """Return what tells whether the process is ready; call it before the process starts."""
        if self.ready.startswith(LOG):
            line = re.compile(self.ready.removeprefix(LOG))
            return lambda: any(map(line.search, list(self.lines)))
        if self.ready.startswith(deployed.HTTP):
            address = filled(self.ready, names)
            return lambda: deployed.answers(address)
        assert self.group is not None
        group = self.group
        admin = AdminClient({**start.get("client", {}), "bootstrap.servers": start["bootstrap"]})
        before = self._members(admin, group)  # a dead one may still be there
        return lambda: bool(self._members(admin, group) - before)

    def _members(self, admin: AdminClient, group: str) -> set[str]:
        """Return the ids of the members of a group that have partitions."""
        try:
            found = admin.describe_consumer_groups([group], request_timeout=DESCRIBE_S)
            described: ConsumerGroupDescription = found[group].result()
        except KafkaException:  # there is no such group yet
            return set()
        return {
            member.member_id
            for member in described.members
            if member.assignment and member.assignment.topic_partitions
        }


def main() -> None:
    """Serve the application whose file is the first argument; the others are programs."""
    file, *programs = sys.argv[1:]
    bridge = Bridge(Path(file))
    bridge.introduce(programs)
    serve(bridge)


if __name__ == "__main__":
    main()
