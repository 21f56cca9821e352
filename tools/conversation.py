"""Record a whole conversation of the harness with a design.

    python tools/conversation.py    hold it on an embedded broker, and write the file

The design is `plain`. A program between it and the harness writes down each line that passes. Ports
and folders of the machine are replaced.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Producer

from upheld.brokers import Asked, Broker, open_broker
from upheld.kafka.reading import Reading
from upheld.programs import PROGRAMS
from upheld.protocol.manifest import load
from upheld.protocol.messages import Start, Value
from upheld.supervisor.instance import Instance
from upheld.supervisor.reaper import RunScope

FILE: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "conversation.jsonl"
HARNESS: Final = "harness"
DESIGN: Final = "design"
SHOWN_BROKER: Final = "127.0.0.1:9092"
SHOWN_FOLDER: Final = "/disks"
ANSWER_S: Final = 20.0
MANIFEST: Final = """\
name = "plain"
version = "1"
command = ["{python}", "between.py"]
extends = "plain"
"""
BETWEEN: Final = f"""\
import json
import subprocess
import sys
import threading

command = [sys.executable, "-m", "upheld.impl.plain"]
design = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
lock = threading.Lock()


def passes(by, source, to):
    for line in iter(source.readline, b""):
        with lock, open("said.jsonl", "a") as file:
            file.write(json.dumps({{"by": by, "says": json.loads(line)}}) + chr(10))
        to.write(line)
        to.flush()


asks = threading.Thread(
    target=passes, args=("{HARNESS}", sys.stdin.buffer, design.stdin), daemon=True
)
asks.start()
passes("{DESIGN}", design.stdout, sys.stdout.buffer)
"""
SIGNALS: Final = {
    "robots": {"name": "Ada"},
    "motors": {"robot": "r1", "ts_ms": 1000, "points": 5},
    "grippers": {"robot": "r1", "ts_ms": 3000, "points": 7},
}


class Said(NamedTuple):
    """A line of the conversation, or a note on what happens between two lines.

    Attributes:
        by: The harness or the design; empty of a note.
        says: The message; of a note its text.
    """

    by: str
    says: Any


class Talk:
    """A conversation that is being held."""

    def __init__(self, broker: Broker, run: RunScope, folder: Path) -> None:
        self.folder = folder
        self._broker = broker
        self._run = run
        self._reading = Reading(broker.bootstrap, broker.client)
        (folder / "design.toml").write_text(MANIFEST, encoding="utf-8")
        (folder / "between.py").write_text(BETWEEN, encoding="utf-8")

    def hold(self) -> list[Said]:
        """Hold the conversation, and return its lines."""
        instance = Instance(load(str(self.folder)), self._run, self.folder / "logs")
        try:
            instance.greet()
            self._pulse(instance)
            self._poison(instance)
        finally:
            instance.kill()
            self._reading.close()
        return self._lines()

    def _pulse(self, instance: Instance) -> None:
        """Ask for a row before and after its records, for lag and for size; then stop."""
        start = self._start("pulse", "talk-1")
        topics = start.topics
        instance.start(start)
        instance.query("frequency", "r1")
        self._note("The harness appends a name and two signals of robot r1 to the inputs.")
        producer = Producer(self._reading.settings)
        for role, value in SIGNALS.items():
            producer.produce(topics[role], json.dumps(value), "r1", 0)
        producer.flush(ANSWER_S)
        self._await_row(instance)
        instance.lag()
        instance.measure()
        instance.stop(10_000)

    def _await_row(self, instance: Instance) -> None:
        """Ask for the row until it holds all records; keep the last answer alone."""
        kept = self._said.read_text(encoding="utf-8")
        until = time.monotonic() + ANSWER_S
        while time.monotonic() < until:
            self._said.write_text(kept, encoding="utf-8")
            answer = instance.query("frequency", "r1")
            row = json.loads(answer.value or "{}") if isinstance(answer, Value) else {}
            if len(row.get("applied", ())) == len(SIGNALS):
                return
        raise SystemExit(f"no row in {ANSWER_S:g} s")

    def _poison(self, instance: Instance) -> None:
        """Start another program, which is not offered as asked at first, and cannot go on."""
        start = self._start("relay", "talk-2")
        instance.start(start.model_copy(update={"group_protocol": "streams"}))
        instance.start(start)
        self._note("The harness appends a record whose value is no Envelope.")
        producer = Producer(self._reading.settings)
        producer.produce(start.topics["input"], b"\xff", "key", 0)
        producer.flush(ANSWER_S)
        until = time.monotonic() + ANSWER_S
        while not instance.failed and time.monotonic() < until:
            time.sleep(0.05)
        if instance.wait_exit(ANSWER_S) is None:
            raise SystemExit("it still runs after `failed`")
        self._note("The design exits.")

    @property
    def _said(self) -> Path:
        return self.folder / "said.jsonl"

    def _note(self, text: str) -> None:
        with self._said.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"by": "", "says": text}) + "\n")

    def _start(self, program: str, application_id: str) -> Start:
        """Return a request to run a program as a new application, whose topics are made."""
        topics = {role: f"{application_id}-{role}" for role in PROGRAMS[program].topics}
        self._reading.create(dict.fromkeys(topics.values(), 1))
        for name in ("state", "durable"):
            (self.folder / name).mkdir(exist_ok=True)
        return Start(
            program=program,
            application_id=application_id,
            instance="a",
            mode="exactly_once",
            bootstrap=self._broker.bootstrap,
            client=self._broker.client,
            topics=topics,
            parameters=PROGRAMS[program].parameters,
            session_timeout_ms=6_000,
            transaction_timeout_ms=10_000,
            state_dir=str(self.folder / "state"),
            durable_dir=str(self.folder / "durable"),
        )

    def _lines(self) -> list[Said]:
        text = self._said.read_text(encoding="utf-8")
        shown = text.replace(self._broker.bootstrap, SHOWN_BROKER)
        shown = shown.replace(str(self.folder), SHOWN_FOLDER)
        return [Said(**json.loads(line)) for line in shown.splitlines()]


def read(path: Path = FILE) -> Iterator[Said]:
    """Go through the lines of the recorded conversation."""
    for line in path.read_text(encoding="utf-8").splitlines():
        yield Said(**json.loads(line))


def main() -> int:
    """Hold the conversation, and write its file."""
    argparse.ArgumentParser(description=str(__doc__).partition("\n")[0]).parse_args()
    with tempfile.TemporaryDirectory() as name, RunScope() as run:
        folder = Path(name)
        broker = open_broker(Asked("embedded"), run=run, log_dir=folder)
        try:
            lines = Talk(broker, run, folder).hold()
        finally:
            broker.close()
    text = "".join(json.dumps(line._asdict()) + "\n" for line in lines)
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
