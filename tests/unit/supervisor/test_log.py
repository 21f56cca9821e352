"""The log of a design is masked as it is written, bounded and private."""

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from miniatures import until

from upheld.masking import KNOWN
from upheld.supervisor import log as logs
from upheld.supervisor.log import Log

SECRET = "hunter2-hunter2"


@pytest.fixture(autouse=True)
def _secret() -> None:
    """Know one secret while a test runs."""
    KNOWN.learn("sasl.password", SECRET)


def written(path: Path, *pieces: bytes, rest_s: float = 0.0) -> bytes:
    """Return what a log holds of these pieces, each written at once."""
    log = Log(path)
    with log.opened() as sink:
        for piece in pieces:
            left = memoryview(piece)
            while left:
                left = left[os.write(sink, left) :]
            time.sleep(rest_s)
    log.close()
    return path.read_bytes()


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make logs small."""
    monkeypatch.setattr(logs, "MOST_BYTES", 64_000)
    monkeypatch.setattr(logs, "HEAD_BYTES", 32_000)
    monkeypatch.setattr(logs, "TAIL_BYTES", 8_000)
    monkeypatch.setattr(logs, "_CHUNK_BYTES", 4_096)


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_a_secret_in_two_pieces(cut: int, tmp_path: Path) -> None:
    """It is masked wherever the design or the pipe cuts it."""
    text = f"connecting with {SECRET} now\n".encode()
    at = text.index(SECRET.encode()) + cut

    held = written(tmp_path / "log", text[:at], text[at:], rest_s=0.002)

    assert held == b"connecting with *** now\n"


def test_a_secret_byte_by_byte(tmp_path: Path) -> None:
    """A design that does not buffer is masked all the same."""
    text = f"<{SECRET}>\n".encode()

    assert written(tmp_path / "log", *(text[n : n + 1] for n in range(len(text)))) == b"<***>\n"


def test_half_a_secret_at_the_end(tmp_path: Path) -> None:
    """A design may die in the middle of it."""
    assert written(tmp_path / "log", b"it is hunter2-hun") == b"it is ***"


def test_at_no_time_is_a_secret_in_the_file(tmp_path: Path) -> None:
    """A run that is killed leaves nothing to be masked."""
    path = tmp_path / "log"
    log = Log(path)
    seen = set[bytes]()
    is_written = threading.Event()
    has_looked = threading.Event()

    def look() -> None:
        is_last = False
        while not is_last:
            is_last = is_written.is_set()
            seen.add(path.read_bytes())
            has_looked.set()

    looking = threading.Thread(target=look)
    looking.start()
    assert has_looked.wait(10)
    with log.opened() as sink:
        for number in range(300):
            os.write(sink, f"{number} {SECRET}\n".encode())
    log.close()
    is_written.set()
    looking.join()

    assert {b"", path.read_bytes()} <= seen
    assert not any(SECRET.encode()[:8] in held for held in seen)
    assert path.read_bytes().count(b"***") == 300


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    """Also where the umask would let everybody."""
    before = os.umask(0)
    try:
        written(tmp_path / "log", b"x")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


@pytest.mark.parametrize("size", [0, 1, 63_999, 64_000, 64_001, 100_000, 1_000_000])
def test_head_and_tail(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long log loses its middle, and says how much that was."""
    small(monkeypatch)
    text = b"".join(b"%07d\n" % n for n in range(size // 8 + 1))[:size]

    held = written(tmp_path / "log", text)

    if size <= 64_000:
        assert held == text
    else:
        head, note, tail = held.partition(b"\n--- upheld left out ")
        count, _, tail = tail.partition(b" bytes here ---\n")
        assert head == text[:32_000]
        assert note
        assert text.endswith(tail)
        assert len(tail) >= 8_000
        assert int(count) == size - len(head) - len(tail)
        assert len(held) <= 64_100


def test_a_flood_without_a_newline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is bounded at every moment, and a secret in it is masked."""
    small(monkeypatch)
    path = tmp_path / "log"
    log = Log(path)
    most = 0
    with log.opened() as sink:
        for _ in range(100):
            os.write(sink, b"e" * 20_000 + SECRET.encode())
            most = max(most, path.stat().st_size)
    log.close()

    assert most <= 64_100
    assert SECRET.encode() not in path.read_bytes()
    assert log.last_line().endswith(b"e***")


def test_the_last_line_after_the_end(tmp_path: Path) -> None:
    """All that a process wrote is read when it has ended, without a wait."""
    log = Log(tmp_path / "log")
    code = "import sys; sys.stderr.write('first\\nlast words\\n\\n')"
    with log.opened() as sink:
        process = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stderr=sink)
    process.wait()
    log.catch_up()

    assert log.last_line() == b"last words"
    assert (tmp_path / "log").read_bytes() == b"first\nlast words\n\n"
    log.close()


def test_a_process_that_is_left_over(tmp_path: Path) -> None:
    """It holds the pipe open and writes on and on: the log ends all the same."""
    log = Log(tmp_path / "log")
    code = "import os\nwhile True: os.write(2, b'still here\\n')"
    with log.opened() as sink:
        process = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stderr=sink)
    until(lambda: (tmp_path / "log").stat().st_size > 0)
    began = time.monotonic()
    log.close()
    log.close()

    assert time.monotonic() - began < 5
    assert process.wait(5) != 0  # nobody reads any more
    assert not log._reader.is_alive()


def test_a_full_disk(tmp_path: Path) -> None:
    """The design is not held up by a log that cannot be written."""
    held = Path("/dev/full")
    log = Log(tmp_path / "log")
    log._file.close()
    log._file = held.open("r+b", buffering=0)
    with log.opened() as sink:
        for _ in range(100):
            os.write(sink, b"x" * 20_000)
    log.close()

    assert log.last_line()


def test_a_silent_design_costs_nothing(tmp_path: Path) -> None:
    """Nothing is looked for while nothing is written."""
    log = Log(tmp_path / "log")
    with log.opened():
        before = time.process_time()
        time.sleep(0.5)
        took_s = time.process_time() - before
    log.close()

    assert took_s < 0.05


def test_the_last_lines_are_whole_after_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They hold all that was written until now, and no more than a bound of it."""
    monkeypatch.setattr(logs, "LAST_BYTES", 18)
    log = Log(tmp_path / "log")
    with log.opened() as sink:
        os.write(sink, b"a line that is long ago\nthe error\nits end\n")
        found = log.last_lines()
    log.close()

    assert found == ["the error", "its end"]
