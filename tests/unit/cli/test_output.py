"""The exit code of a command is the verdict's, whatever becomes of its output."""

import errno
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from histories import Story

from upheld.cli import main
from upheld.ui.streams import Outlet, Stream

ANSWER_S = 60.0
UPHELD = f"{sys.executable} -m upheld"


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a history that is upheld and one that is cut."""
    folder = tmp_path_factory.mktemp("histories")
    story = Story()
    story.names("app-entries", "app-balances")
    story.start()
    story.recorded(folder / "right.jsonl")
    (folder / "wrong.jsonl").write_text((folder / "right.jsonl").read_text()[:-20])
    return folder


def ran(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of bash, and return the end of the first command of its pipe."""
    return subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("judge right.jsonl wrong.jsonl", 4),
        ("judge --json right.jsonl wrong.jsonl", 4),
        ("explain G999", 4),
        ("run --design plain --guarantee G17 --program relay", 5),
        ("schema", 0),
        ("--help", 0),
        ("lint", 0),
    ],
)
def test_a_reader_that_leaves_changes_no_exit_code(
    histories: Path, command: str, code: int
) -> None:
    """`| true` and `| head -c 1` are readers that leave, and get no traceback."""
    for reader in ("true", "head -c 1"):
        end = ran(f"{UPHELD} {command} | {reader}", histories)

        assert end.returncode == code, end.stderr
        assert "Broken" not in end.stderr
        assert "Traceback" not in end.stderr


@pytest.mark.parametrize("command", ["list", "schema", "--version"])
@pytest.mark.parametrize(
    ("output", "says"),
    [
        (">/dev/full", "Standard output cannot be written (No space left on device)."),
        (">&-", "Standard output is closed, so nothing can be said; open it, or name /dev/null."),
        ("1</dev/null", "Standard output is closed, so nothing can be said"),
    ],
)
def test_an_output_that_is_lost_is_no_success(
    tmp_path: Path, command: str, output: str, says: str
) -> None:
    """A disk that is full and an output that is closed make a 0 a 3, in one sentence."""
    end = ran(f"{UPHELD} {command} {output}", tmp_path)

    assert end.returncode == 3
    assert end.stderr.count("\n") == 1
    assert end.stderr.startswith(f"upheld: {says}")


def test_a_lost_output_does_not_hide_a_red(histories: Path) -> None:
    """The exit code of a history that cannot be judged stays 4."""
    assert ran(f"{UPHELD} judge wrong.jsonl >/dev/full", histories).returncode == 4
    assert ran(f"{UPHELD} judge wrong.jsonl 2>/dev/full", histories).returncode == 4
    assert ran(f"{UPHELD} judge wrong.jsonl 2>&-", histories).returncode == 4
    assert ran(f"{UPHELD} judge wrong.jsonl 2>&1 | true", histories).returncode == 4


def test_no_file_becomes_the_output(tmp_path: Path) -> None:
    """With all three streams closed, no file that is opened gets what is printed."""
    end = ran(f"{UPHELD} new mine <&- 2>&- >&-", tmp_path)

    assert end.returncode == 3
    assert not (tmp_path / "mine").exists()


def test_an_output_of_another_encoding_has_escapes(tmp_path: Path) -> None:
    """A character that an old terminal lacks ends nothing."""
    end = ran(f"PYTHONIOENCODING=ascii LC_ALL=C PYTHONUTF8=0 {UPHELD} list", tmp_path)

    assert (end.returncode, end.stderr) == (0, "")
    assert end.stdout.isascii()


def test_a_pipe_that_does_not_block_gets_all(tmp_path: Path) -> None:
    """The text that a full pipe does not take at once is written later."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with subprocess.Popen(
        [sys.executable, "-m", "upheld", "list", "--json"], stdout=writer, cwd=tmp_path
    ) as listing:
        os.close(writer)
        with os.fdopen(reader, "rb") as read:
            text = read.read()
        assert listing.wait(ANSWER_S) == 0
    assert text.endswith(b"}\n")
    assert len(text) > 1 << 16


def test_a_terminal_that_is_closed_loses_text_and_nothing_else() -> None:
    """Its error is that of a reader who has left, and no lost file."""
    master, slave = pty.openpty()
    outlet = Outlet(slave)
    stream = Stream(outlet, None)
    os.close(master)

    stream.write("into nothing\n")
    stream.flush()

    assert outlet.failure
    assert (outlet.failure.errno, outlet.is_lost, outlet.is_unread) == (errno.EIO, False, False)
    os.close(slave)


def test_outlets_of_one_file_share_its_fate() -> None:
    """An error on the descriptor of the progress is known of standard output."""
    with Path("/dev/full").open("wb", buffering=0) as full:
        stream = Stream(Outlet(full.fileno()), None)
        apart = Outlet.apart(stream)

        apart.write(b"lost")

        assert stream.outlet.is_lost
        apart.close()


def test_a_command_in_a_process_leaves_its_streams_as_they_were(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Streams without a descriptor are used as they are."""
    before = (sys.stdout, sys.stderr)

    assert main(["explain", "G22"]) == 0

    assert (sys.stdout, sys.stderr) == before
    assert isinstance(before[0], io.TextIOBase)
    assert capsys.readouterr().out.startswith("G22")
