"""The bridge answers for an application that knows nothing of the harness.

The applications here are one line each, and say by their log that they are ready.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from miniatures import until

START = {
    "type": "start",
    "program": "orders",
    "application_id": "trial-1",
    "instance": "a",
    "mode": "exactly_once",
    "bootstrap": "broker:9092",
    "topics": {"orders": "trial-1-orders", "costs": "trial-1-costs"},
    "parameters": {"commit_interval_ms": 100},
    "session_timeout_ms": 2000,
    "transaction_timeout_ms": 3000,
    "state_dir": "/state",
    "durable_dir": "/durable",
}
STOP = {"type": "stop", "deadline_ms": 5000}
WAITS = "import time; print('up', flush=True); time.sleep(60)"


SERVES = """
import configparser, http.server, os
read = configparser.ConfigParser()
read.read(os.environ['FILE'])
print(read['app']['broker'], flush=True)
answers = [503, 200]

class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status = answers.pop(0)
        print(status, flush=True)
        self.send_response(status if self.path == '/ready' else 404)
        self.end_headers()
    def log_message(self, *_):
        pass

http.server.HTTPServer(('127.0.0.1', read.getint('app', 'port')), Health).serve_forever()
"""


ANSWERS = """
import http.server, os

class Table(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        key = self.path.removeprefix('/costs/')
        self.send_response(int(key) if key.isdigit() else 200)
        self.end_headers()
        self.wfile.write(key.encode() if key != 'latin' else b'\\xe9')
    def log_message(self, *_):
        pass

server = http.server.HTTPServer(('127.0.0.1', int(os.environ['TOLD'])), Table)
print('up', flush=True)
server.serve_forever()
"""
HANGS = """
import os, socket, time
server = socket.create_server(('127.0.0.1', int(os.environ['TOLD'])))
print('up', flush=True)
time.sleep(60)
"""


class Bridge:
    """A bridge over one application, and the conversation with it."""

    def __init__(self, folder: Path, script: str, **tables: str) -> None:
        environment = {"TOLD": "{bootstrap} {input.orders} {output.costs} {mode} {instance}"}
        count = tables.pop("count", "1")
        lines = [
            'name = "orders"',
            'version = "1"',
            'modes = ["exactly_once"]',
            'group = "{application_id}-group"',
            *(f"{name} = {value}" for name, value in tables.items()),
            "[input.orders]",
            "[output.costs]",
            "[process.app]",
            f"command = {json.dumps(['{python}', '-c', script, '{process}'])}",
            f"count = {count}",
            "[process.app.environment]",
            *(f"{name} = {json.dumps(value)}" for name, value in environment.items()),
            "[signals]",
            'ready = "log:^up"',
            "start_s = 5",
        ]
        file = folder / "design.toml"
        file.write_text("\n".join(lines))
        self.begin(file)

    @classmethod
    def of(cls, file: Path) -> "Bridge":
        """Return a bridge over an application whose file is there."""
        made = cls.__new__(cls)
        made.begin(file)
        return made

    def begin(self, file: Path) -> None:
        """Start it."""
        self.log = file.parent / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "upheld.bridge", str(file), "relay", "ledger"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask, and return the next message."""
        assert self.process.stdin
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return self.hear()

    def hear(self) -> dict[str, Any]:
        """Return the next message."""
        assert self.process.stdout
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        return message

    def close(self) -> None:
        """End whatever is left of it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Callable[..., Bridge]]:
    """Return what builds bridges, and end them."""
    built: list[Bridge] = []

    def build(script: str, **tables: str) -> Bridge:
        built.append(Bridge(tmp_path, script, **tables))
        return built[-1]

    yield build
    for each in built:
        each.close()


def test_it_says_hello_for_the_application(bridge: Callable[..., Bridge]) -> None:
    """Name, version, modes and capabilities are those of design.toml."""
    hello = bridge(WAITS, capabilities='["scale"]').ask({"type": "hello"})

    assert hello["name"] == "orders"
    assert hello["programs"] == ["relay", "ledger"]
    assert (hello["modes"], hello["capabilities"]) == (["exactly_once"], ["scale"])


def test_the_topics_that_it_makes_are_declared(bridge: Callable[..., Bridge]) -> None:
    """Otherwise rows would call them leaked."""
    made = bridge(WAITS, internal_topics='["{application_id}-totals-changelog"]')

    assert made.ask(START)["internal_topics"] == ["trial-1-totals-changelog"]


def test_the_application_is_told_its_names(bridge: Callable[..., Bridge]) -> None:
    """Placeholders are filled in, and `ready` names its group."""
    told = bridge(f"import os; print('told', os.environ['TOLD']); {WAITS}")

    assert told.ask(START) == {
        "type": "ready",
        "consumer_group": "trial-1-group",
        "internal_topics": [],
    }
    assert told.ask(STOP) == {"type": "stopped"}
    assert told.log.read_text().splitlines() == [
        "told broker:9092 trial-1-orders trial-1-costs exactly_once a",
        "up",
    ]


def test_an_application_without_a_group_names_none(
    bridge: Callable[..., Bridge], tmp_path: Path
) -> None:
    """Its progress is elsewhere, and `ready` says no group."""
    grouped = bridge(f"import os; print('told', os.environ['TOLD']); {WAITS}")
    file = tmp_path / "design.toml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("group =")]
    text = "\n".join(lines).replace("{instance}", "{state_dir} {durable_dir}")
    file.write_text(text)
    grouped.close()
    again = Bridge.of(file)

    assert again.ask(START) == {"type": "ready", "internal_topics": []}
    assert again.ask(STOP) == {"type": "stopped"}
    assert again.log.read_text().splitlines()[0].endswith("exactly_once /state /durable")
    again.close()


def test_a_file_is_rendered_and_http_says_that_it_is_ready(
    bridge: Callable[..., Bridge], tmp_path: Path
) -> None:
    """The service takes its port of a file, and answers when it is ready."""
    (tmp_path / "app.ini.tmpl").write_text("[app]\nport = {port}\nbroker = {bootstrap} {other}\n")
    served = bridge(SERVES)
    file = tmp_path / "design.toml"
    text = file.read_text().replace('"log:^up"', '"http://127.0.0.1:{port}/ready"')
    render = 'render = { "conf/app.ini" = "{dir}/app.ini.tmpl" }\n[process.app.environment]'
    text = text.replace(
        "[process.app.environment]", f'{render}\nFILE = "{{rendered}}/conf/app.ini"'
    )
    file.write_text(text)
    served.close()
    again = Bridge.of(file)

    assert again.ask(START)["type"] == "ready"
    assert again.ask(STOP) == {"type": "stopped"}
    assert again.log.read_text().splitlines() == ["broker:9092 {other}", "503", "200"]
    again.close()


def asking(made: Bridge, folder: Path) -> Bridge:
    """Return a bridge over the same application, which answers queries at a port."""
    made.close()
    file = folder / "design.toml"
    lines = [
        'TOLD = "{port}"' if line.startswith("TOLD") else line
        for line in file.read_text().splitlines()
    ]
    lines += ["[query.costs]", 'http = "http://127.0.0.1:{port}/costs/{key}"']
    file.write_text("\n".join(lines))
    return Bridge.of(file)


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("a/b c", {"type": "value", "value": "a%2Fb%20c"}),
        ("404", {"type": "value", "value": None}),
        ("204", {"type": "value", "value": None}),
        ("503", {"type": "not_ready"}),
        ("421", {"type": "not_ready"}),
        ("307", {"type": "not_ready"}),
    ],
)
def test_a_query_is_asked_by_http(
    bridge: Callable[..., Bridge], tmp_path: Path, key: str, answer: dict[str, Any]
) -> None:
    """The key is quoted; the status says whether there is a value, or who has it."""
    asked = asking(bridge(ANSWERS), tmp_path)
    query = {"type": "query", "table": "costs", "key": key}

    assert asked.ask({"type": "hello"})["capabilities"] == ["query"]
    assert asked.ask(START)["type"] == "ready"
    assert asked.ask(query) == answer
    asked.close()


def test_an_answer_that_is_none_is_an_error(bridge: Callable[..., Bridge], tmp_path: Path) -> None:
    """The sentence has the address and what it said."""
    asked = asking(bridge(ANSWERS), tmp_path)
    asked.ask(START)
    query = {"type": "query", "table": "costs"}

    refused = asked.ask(query | {"key": "403"})
    unreadable = asked.ask(query | {"key": "latin"})

    assert refused["message"].endswith("/costs/403 answers with status 403")
    assert unreadable["message"].endswith("/costs/latin answers with what is no UTF-8: b'\\xe9'")
    asked.close()


def test_a_service_that_does_not_answer_is_not_ready(
    bridge: Callable[..., Bridge], tmp_path: Path
) -> None:
    """The harness is answered before it gives up."""
    asked = asking(bridge(HANGS), tmp_path)
    asked.ask(START)

    assert asked.ask({"type": "query", "table": "costs", "key": "a"}) == {"type": "not_ready"}
    asked.close()


def test_it_is_ended_by_its_signal(bridge: Callable[..., Bridge]) -> None:
    """An application that has work to do at its end does it before `stopped` is said."""
    polite = bridge(
        "import signal, sys, time\n"
        "def end(*_): print('bye', flush=True); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(60)"
    )
    polite.ask(START)

    assert polite.ask(STOP) == {"type": "stopped"}
    assert polite.log.read_text().splitlines() == ["up", "bye"]


def test_an_end_before_it_was_ready_is_an_error(bridge: Callable[..., Bridge]) -> None:
    """The answer has the exit code and the last words."""
    answer = bridge("print('no topic'); raise SystemExit(3)").ask(START)

    assert answer["type"] == "error"
    assert answer["message"] == "it ended with 3 before it was ready: no topic"


def test_an_engine_that_does_not_answer_is_an_error(
    bridge: Callable[..., Bridge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that stands for the container says why it ends."""
    bridge(WAITS).close()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("UPHELD_RUN", "0123456789ab")
    file = tmp_path / "design.toml"
    text = file.read_text().replace("start_s = 5", "start_s = 50")
    lines = ["image = 'shop/orders:4'" if "command" in each else each for each in text.split("\n")]
    file.write_text("\n".join(lines))
    again = Bridge.of(file)

    said = again.ask(START)["message"]

    assert said.startswith("it ended with 125 before it was ready: the container of shop/orders:4 ")
    again.close()


def test_it_is_given_a_time_to_be_ready(bridge: Callable[..., Bridge]) -> None:
    """The error says what was waited for, and for how long."""
    answer = bridge("import time; time.sleep(60)").ask(START)

    assert answer["type"] == "error"
    assert answer["message"] == "it was not ready by log:^up in 5 s: its log is empty"


def test_an_exit_code_is_a_loud_stop(bridge: Callable[..., Bridge]) -> None:
    """Without a supervisor of its own, whoever would start it again hears of it."""
    loud = bridge("import time; print('up', flush=True); time.sleep(0.2); raise SystemExit(7)")
    loud.ask(START)

    assert loud.hear() == {
        "type": "failed",
        "kind": "ended",
        "message": "the application has ended with 7: up",
        "again": False,
    }
    assert loud.process.wait(10) == 1


@pytest.mark.parametrize(("end", "code"), [("os.abort()", -6), ("os._exit(0)", 0)])
def test_a_crash_and_a_silent_end_are_none(
    bridge: Callable[..., Bridge], end: str, code: int
) -> None:
    """Nobody would know of them, and they end the instance."""
    mortal = bridge(f"import os, time; print('up', flush=True); time.sleep(0.2); {end}")
    mortal.ask(START)

    assert mortal.process.wait(10) == 1
    assert f"the application has ended with {code}" in mortal.log.read_text()
    assert mortal.process.stdout
    assert not mortal.process.stdout.read()


def test_its_supervisor_starts_it_again(bridge: Callable[..., Bridge], tmp_path: Path) -> None:
    """Each new start is a notice, so that the harness knows of it."""
    mark = tmp_path / "was here"
    script = (
        f"import os, time; first = not os.path.exists({str(mark)!r}); open({str(mark)!r}, 'w'); "
        "print('up', flush=True); time.sleep(0.1 if first else 60)"
    )
    kept = bridge(script, restart='"on-exit"')
    kept.ask(START)

    assert kept.hear() == {"type": "notice", "kind": "recovered"}
    until(lambda: kept.log.read_text().splitlines() == ["up", "up"])
    assert kept.ask(STOP) == {"type": "stopped"}


def test_what_strikes_an_instance_strikes_the_application(bridge: Callable[..., Bridge]) -> None:
    """Both are in one session, so that neither outlives the other."""
    struck = bridge("import os, time; print('up', os.getpid(), flush=True); time.sleep(60)")
    struck.ask(START)
    until(lambda: struck.log.read_text().endswith("\n"))
    child = int(struck.log.read_text().split()[1])

    assert os.getsid(child) == struck.process.pid


# Its first process is up at once, and the second one a little later.
TAKES_TURNS = (
    "import signal, sys, time; name = sys.argv[1]\n"
    "def end(*_): print('bye', name, flush=True); sys.exit()\n"
    "signal.signal(signal.SIGTERM, end)\n"
    "time.sleep(0.3 if name == 'app-2' else 0); print('up', name, flush=True)\n"
)


def test_each_of_several_processes_is_started_and_ended(bridge: Callable[..., Bridge]) -> None:
    """All of them have to say that they are ready, and all are told to stop."""
    two = bridge(f"{TAKES_TURNS}time.sleep(60)", count="2")

    assert two.ask(START)["type"] == "ready"
    assert sorted(two.log.read_text().splitlines()) == ["up app-1", "up app-2"]
    assert two.ask(STOP) == {"type": "stopped"}
    assert sorted(two.log.read_text().splitlines()[2:]) == ["bye app-1", "bye app-2"]


def test_the_death_of_one_process_ends_the_instance(bridge: Callable[..., Bridge]) -> None:
    """The others do not go on without it: nobody would notice."""
    dies = "import os; print(os.getpid(), flush=True); time.sleep(60 if name == 'app-1' else 0.2)"
    two = bridge(f"{TAKES_TURNS}{dies}\nraise SystemExit(7)", count="2")
    two.ask(START)

    assert two.process.wait(10) == 1
    lines = two.log.read_text().splitlines()
    assert "its process app-2 has ended with 7" in two.hear()["message"]
    assert not any(Path(f"/proc/{line}").exists() for line in lines if line.isdigit())


def test_a_supervisor_starts_the_process_again_that_has_ended(
    bridge: Callable[..., Bridge], tmp_path: Path
) -> None:
    """The other one goes on."""
    mark = tmp_path / "was here"
    dies = (
        f"import os; first = name == 'app-2' and not os.path.exists({str(mark)!r})\n"
        f"if first: open({str(mark)!r}, 'w'); time.sleep(0.2); sys.exit(3)\n"
        "time.sleep(60)"
    )
    two = bridge(f"{TAKES_TURNS}{dies}", count="2", restart='"on-exit"')
    two.ask(START)

    assert two.hear() == {"type": "notice", "kind": "recovered"}
    until(lambda: two.log.read_text().count("up app-2") == 2)
    assert two.log.read_text().count("up app-1") == 1
    assert two.ask(STOP) == {"type": "stopped"}


def test_a_process_that_ends_too_early_is_named(bridge: Callable[..., Bridge]) -> None:
    """So is each one that is not ready in time, with its last words."""
    early = bridge("import sys; print(sys.argv[1]); sys.exit(sys.argv[1] == 'app-2')", count="2")

    said = early.ask(START)["message"]

    assert said.startswith("its process app-")
    assert "before it was ready" in said
