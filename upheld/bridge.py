"""The adapter of an application that has none.

It reads the application's `design.toml`, starts its processes, and answers the harness in its
place. They know nothing of it. Command and environment tell them their names, and a signal ends
them. They are in the session of this process, so that whatever strikes an instance strikes all.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final, NoReturn, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription

from upheld.adapter import Design, Failed, Message, error, serve
from upheld.commands import BY_SIGNAL, PYTHON, filled
from upheld.protocol.subject import NAMESPACE
from upheld.reading import read_toml
from upheld.supervisor import contained, deployed, namespace
from upheld.supervisor.deployed import Part
from upheld.supervisor.namespace import Namespace

LOG: Final = "log:"  # before the regular expression that a line of the log matches
LOOK_S: Final = 0.05
DESCRIBE_S: Final = 5.0
AGAIN_S: Final = 0.2  # a process that ends at once is not started without a pause
HEARD_S: Final = 1.0  # for the end of a log, which a child of the process may keep open
TOLD_LINES: Final = 5  # of its log, if it does not start
SHOWN_BYTES: Final = 80

Result = TypeVar("Result")


class Process:
    """A process of an application, which may be started again, and what it says.

    A container is one too: a process stands for it.
    """

    def __init__(self, part: Part, folder: Path, environment: Mapping[str, str]) -> None:
        self.part = part
        self.folder = folder
        self.environment = {**environment, **part.environment}
        self.spawn()

    def spawn(self) -> None:
        """Start it."""
        self.lines: list[str] = []
        self.running = subprocess.Popen(
            self.part.command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert self.running.stdout
        self.reader = threading.Thread(target=self._hear, args=(self.running.stdout,), daemon=True)
        self.reader.start()

    def _hear(self, log: IO[str]) -> None:
        """Keep the last lines of its log, and pass all of them on."""
        for line in log:
            self.lines.append(line.rstrip("\n"))
            del self.lines[:-200]
            print(line, end="", file=sys.stderr, flush=True)

    def kill(self) -> None:
        """Kill it; a container is killed by what stands for it."""
        self.running.send_signal(contained.KILL if self.part.is_contained else signal.SIGKILL)

    def wait(self) -> None:
        """Wait until it has ended, and its last words are passed on."""
        self.running.wait()
        self.reader.join(HEARD_S)

    def says(self, line: re.Pattern[str]) -> bool:
        """Return whether a line of its log matches."""
        return any(map(line.search, list(self.lines)))

    @property
    def last_words(self) -> str:
        """The last lines of its log that say something."""
        return " / ".join(deployed.last_words(self.lines, TOLD_LINES)) or "its log is empty"


class Bridge(Design):
    """One instance of an application, and the answers in its place."""

    def __init__(self, file: Path) -> None:
        self.folder = file.parent
        self.tables: dict[str, Any] = read_toml(file)
        signals = self.tables.get("signals", {})
        self.ready: str = signals.get("ready", "group")
        self.stop_signal = signal.Signals[signals.get("stop", "SIGTERM")]
        self.start_s: float = signals.get("start_s", 50)
        self.restarts = self.tables.get("restart", "never") == "on-exit"
        self.processes: list[Process] = []
        self.fence: Namespace | None = None

    def introduce(self, programs: Iterable[str]) -> None:
        """Say of the application what its file says of it."""
        self.hello = {
            "name": self.tables["name"],
            "version": str(self.tables["version"]),
            "language": "any",
            "programs": list(programs),
            "modes": self.tables["modes"],
            "capabilities": self._capabilities(),
        }

    def _capabilities(self) -> list[str]:
        """Return what it offers: what its file says, and queries if it has any."""
        asked = ["query"] if self.tables.get("query") else []
        return [*self.tables.get("capabilities", []), *asked]

    def open(self, start: Message) -> Message:
        """Start the processes, and wait until they say that they are ready."""
        names = self._names(start)
        self.group: str | None = None
        if "group" in self.tables:
            self.group = filled(self.tables["group"], names)
        internal = [filled(each, names) for each in self.tables.get("internal_topics", ())]
        rendered = Path(tempfile.mkdtemp(prefix="upheld-rendered-"))
        given = deployed.of_caller(self._given(), os.environ)
        parts = deployed.parts(self.tables["process"], self.ready, names, rendered, given)
        if self.tables.get("fence") == NAMESPACE:
            parts = self._fenced(parts, start)
        are_ready = self._readiness(start)
        self.processes = [Process(each, self.folder, self._environment(each)) for each in parts]
        until = time.monotonic() + self.start_s
        while not are_ready():
            for process in self.processes:
                if (code := process.running.poll()) is not None:
                    who = self._named(process, "it")
                    said = process.last_words
                    return error(f"{who} ended with {code} before it was ready: {said}")
            if time.monotonic() > until:
                said = "; ".join(map(self._last_words, self.processes))
                return error(f"it was not ready by {self.ready} in {self.start_s:g} s: {said}")
            time.sleep(LOOK_S)
        ready = {"internal_topics": internal}
        return ready if self.group is None else ready | {"consumer_group": self.group}

    def _fenced(self, found: list[Part], start: Message) -> list[Part]:
        """Return the processes as they run inside of a fence, and say in the log what it keeps."""
        broker = namespace.advertised(start["bootstrap"], start.get("client", {}))
        outside = namespace.Outside(
            broker, self.tables.get("hosts", ()), self.tables.get("peers", ())
        )

        def say(asked: str) -> None:
            print(f"the fence keeps it from {asked}", file=sys.stderr, flush=True)

        folder = Path(tempfile.mkdtemp(prefix="upheld-fence-"))
        parts, self.fence = namespace.fenced(found, outside, folder, say)
        return parts

    def _within(self, act: Callable[[], Result]) -> Result:
        """Ask its processes where they are: inside of the fence, if there is one."""
        return self.fence.within(act) if self.fence else act()

    def run(self, stopping: threading.Event) -> None:
        """Wait for the end, and start a process anew if its supervisor would."""
        while not stopping.wait(LOOK_S):
            for process in self.processes:
                code = process.running.poll()
                if code is None:
                    continue
                if not self.restarts:
                    self._end(process, code)
                if stopping.wait(AGAIN_S):
                    break
                process.spawn()
                self.notice("recovered")
        for process in self.processes:
            process.running.send_signal(self.stop_signal)
        for process in self.processes:
            process.wait()

    def query(self, table: str, key: str) -> Message:
        """Ask its process by HTTP for the value of a key, and pass on what it replies."""
        parts = (process.part for process in self.processes)
        address = deployed.address_of(self.tables["query"][table]["http"], parts, key)
        status, body = self._within(lambda: deployed.asked(address))
        if status == deployed.NO_ANSWER or status in deployed.NOT_READY:
            return {"type": "not_ready"}
        if status in deployed.NO_VALUE:
            return {"type": "value", "value": None}
        if status not in deployed.OK:
            return error(f"{address} answers with status {status}")
        try:
            return {"type": "value", "value": body.decode()}
        except UnicodeDecodeError:
            return error(f"{address} answers with what is no UTF-8: {body[:SHOWN_BYTES]!r}")

    def _end(self, process: Process, code: int) -> NoReturn:
        """End with a process: nobody starts it again, and the others do not go on without it.

        An exit code that says that something is wrong is its loud stop. A death by a signal is
        none, nor is an end as if all were well.

        Raises:
            Failed: It has stopped loudly.
        """
        for other in self.processes:
            other.kill()
            other.wait()
        said = f"{self._named(process, 'the application')} has ended with {code}"
        if 0 < code < BY_SIGNAL:
            raise Failed("ended", f"{said}: {process.last_words}")
        print(said, file=sys.stderr, flush=True)
        os._exit(1)

    def _last_words(self, process: Process) -> str:
        """Return the last words of a process, with its name if there are several."""
        name = f"{process.part.name}: " if len(self.processes) > 1 else ""
        return f"{name}{process.last_words}"

    def _named(self, process: Process, alone: str) -> str:
        """Return the name of a process among several, or what it is called alone."""
        return f"its process {process.part.name}" if len(self.processes) > 1 else alone

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
        names |= deployed.credentials(start.get("client", {}))
        return names | {
            "mode": start.get("mode") or "at_least_once",
            "dir": str(self.folder),
            "python": PYTHON,
            "tmp_dir": tempfile.gettempdir(),
        }

    def _environment(self, part: Part) -> dict[str, str]:
        """Return the variables of this process that are for a process of the application too.

        What stands for a container is of the harness, as this process is.
        """
        is_own = part.is_contained or "PYTHONPATH" in self._given()
        return {name: value for name, value in os.environ.items() if is_own or name != "PYTHONPATH"}

    def _given(self) -> list[str]:
        """Return the variables that the file says are for the application, by their names."""
        return [
            *self.tables.get("inherit", ()),
            *self.tables.get("secrets", ()),
            *self.tables.get("environment", {}),
        ]

    def _readiness(self, start: Message) -> Callable[[], bool]:
        """Return what tells whether the processes are ready; call it before they start.

        Each of them has to say so, but for a group: one member with partitions is enough.
        """
        if self.ready.startswith(LOG):
            line = re.compile(self.ready.removeprefix(LOG))
            return lambda: all(process.says(line) for process in self.processes)
        if self.ready.startswith(deployed.HTTP):
            return lambda: self._within(
                lambda: deployed.all_answer(each.part for each in self.processes)
            )
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
