"""The user sees rows being judged.

There is one live line on a terminal, and elsewhere a line for each row. No Kafka is started.
"""

import io
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clocks import Clock
from rich.console import Console
from terminals import CTRL_C, HIDES, Terminal

from upheld.ui.progress import Progress, apart
from upheld.ui.timeleft import Mean, as_text

SCRIPT = """
import sys, time
from upheld.ui.progress import Progress
from upheld.ui.console import console
with Progress(console()) as progress:
    progress.begin(98, lambda: 240.0)
    progress.started("G1.a[ledger-exactly_once]")
    progress.finished("G1.a[ledger-exactly_once] 4.1 s", "upheld", style="green", is_quiet=True)
    progress.started("G2.b[relay-exactly_once]")
    progress.finished("G2.b[relay-exactly_once] 2.0 s", "violated", style="red")
    progress.message("VIOLATED  G2.b[relay-exactly_once]  plain\\n  again     run it")
    progress.started("G3.c[relay-exactly_once]", 1)
    progress.started("G4.d[relay-exactly_once]", 2)
    if sys.argv[1] == "waits":
        for _ in range(600):  # a signal just before one long sleep would wait for its end
            time.sleep(0.1)
    if sys.argv[1] == "fails":
        raise SystemExit(7)
print("2 of 98")
"""
LIVE = (
    b"[2/98] 1 upheld, 1 violated; about 4 min left; "
    b"G3.c[relay-exactly_once] 0 s, G4.d[relay-exactly_once] 0 s"
)


@pytest.fixture
def said() -> io.StringIO:
    """Return the buffer that takes the output where there is no terminal."""
    return io.StringIO()


@pytest.fixture
def progress(said: io.StringIO) -> Iterator[Progress]:
    """Yield a progress that is no live line."""
    with Progress(Console(file=said, width=1000, soft_wrap=True)) as made:
        yield made


def on_a_terminal(how: str = "waits", columns: int = 160, **environment: str) -> Terminal:
    """Return the script on a terminal."""
    return Terminal(sys.executable, "-c", SCRIPT, how, columns=columns, **environment)


def test_each_row_is_a_line_where_there_is_no_terminal(
    progress: Progress, said: io.StringIO
) -> None:
    """A line has the rows done of how many, the verdict, the row and its seconds.

    Brackets are no markup.
    """
    progress.begin(98, lambda: None)
    progress.finished(
        "G22.dies-after-a-commit[ledger-exactly_once] 4.1 s", "upheld", style="green", is_quiet=True
    )
    progress.finished("plain G1.a 0.1 s  2 attempts", "violated")

    assert said.getvalue().splitlines() == [
        "[1/98] upheld G22.dies-after-a-commit[ledger-exactly_once] 4.1 s",
        "[2/98] violated plain G1.a 0.1 s  2 attempts",
    ]


def test_the_time_left_is_said_again_and_again(said: io.StringIO) -> None:
    """With what is under way, and for how long; not once more after the end."""
    clock = Clock()
    printed = threading.Event()
    file = said

    class Told(io.StringIO):
        def write(self, text: str) -> int:
            printed.set()
            return file.write(text)

    with Progress(Console(file=Told(), width=1000), every_s=0.01, clock=clock) as progress:
        progress.begin(98, lambda: 130.0)
        progress.started("G1.a", 2)
        progress.started("G2.b", 1)
        clock.now_s = 12.4
        printed.clear()
        assert printed.wait(5)
    lines = said.getvalue().splitlines()
    assert "[0/98] about 2 min left; G2.b 12 s, G1.a 12 s" in lines
    over = progress._over
    assert over is not None
    assert over.is_set()


def test_no_time_is_left_after_the_last(progress: Progress) -> None:
    """Lanes end, and reports are written; no estimate is made of that."""
    progress.begin(1, lambda: 5.0)
    assert progress.left() == "about 5 s left"

    progress.finished("it", "upheld")

    assert progress.left() == ""


def test_many_lanes_are_counted(progress: Progress) -> None:
    """Four rows are named, and the others counted.

    A row that is judged again later is not under way.
    """
    for lane in range(1, 8):
        progress.started(f"G{lane}.a", lane)
    progress.stopped(1)

    assert progress.under_way() == "G2.a 0 s, G3.a 0 s, G4.a 0 s, G5.a 0 s, 2 others"


def test_a_terminal_has_one_live_line_below_what_failed() -> None:
    """Upheld rows are counted alone.

    A failure's line and its card stand above, at once.
    """
    with on_a_terminal() as terminal:
        terminal.until(lambda screen: LIVE in screen)
        assert terminal.shown(160) == [
            "[2/98] violated G2.b[relay-exactly_once] 2.0 s",
            "VIOLATED  G2.b[relay-exactly_once]  plain",
            "  again     run it",
            LIVE.decode(),
        ]
        assert not terminal.is_as_it_was()


@pytest.mark.parametrize(
    ("how", "code"), [("ends", 0), ("fails", 7), ("waits", -2)], ids=["itself", "error", "ctrl-c"]
)
def test_the_terminal_is_as_it_was_afterwards(how: str, code: int) -> None:
    """However it ends, the cursor is visible and the live line gone.

    All that was printed stays.
    """
    with on_a_terminal(how) as terminal:
        terminal.until(lambda screen: LIVE in screen)
        if how == "waits":
            terminal.press(CTRL_C)

        assert terminal.end() == code

        assert HIDES in terminal.screen
        assert terminal.is_as_it_was()
        shown = terminal.shown(160)
        assert not [line for line in shown if "left;" in line]
        assert "VIOLATED  G2.b[relay-exactly_once]  plain" in shown


def test_a_narrow_terminal_cuts_the_line() -> None:
    """The counts and the time left are kept, and the line stays one."""
    with on_a_terminal(columns=50) as terminal:
        terminal.until(lambda screen: "about 4 min left; G3…".encode() in screen)

        assert terminal.shown(50)[-1] == "[2/98] 1 upheld, 1 violated; about 4 min left; G3…"


def test_ci_has_lines_on_a_terminal_too() -> None:
    """Its log keeps each redrawing of a live line."""
    with on_a_terminal(CI="true", NO_COLOR="1") as terminal:
        terminal.until(lambda screen: b"run it" in screen)

        assert b"[1/98] upheld G1.a[ledger-exactly_once] 4.1 s" in terminal.screen
        assert HIDES not in terminal.screen


def test_the_console_is_out_of_the_reach_of_pytests_capturing(tmp_path: Path) -> None:
    """The console's descriptor is another one to the same file.

    While a test runs, the standard streams lead elsewhere.
    """
    with (tmp_path / "said").open("w") as file:
        console = apart(Console(file=file))
        file.close()
        console.print("here")

    assert (tmp_path / "said").read_text() == "here\n"


def test_a_reader_that_leaves_is_known_and_ends_nothing() -> None:
    """`| head` is no verdict: all goes on, and who asks hears that nobody reads."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as file, Progress(Console(file=file)) as progress:
        progress.begin(2, lambda: None)
        progress.finished("one", "ok")
        was_unread = progress.is_unread
        os.close(reader)

        progress.finished("two", "ok")
        progress.message("said to nobody")

        assert (was_unread, progress.is_unread, progress.done) == (False, True, 2)


def test_a_thread_that_finds_no_reader_ends_nothing() -> None:
    """A line that another thread cannot print is known to the main thread."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as file, Progress(Console(file=file), every_s=0.01) as progress:
        os.close(reader)
        progress.begin(2, lambda: 1.0)
        deadline = time.monotonic() + 10
        while not progress.is_unread and time.monotonic() < deadline:
            time.sleep(0.01)

        assert progress.is_unread


def test_pieces_that_will_not_be_done_are_not_counted(
    progress: Progress, said: io.StringIO
) -> None:
    """A conversation that breaks off has fewer checks."""
    progress.begin(5, lambda: None)
    progress.skip(3)
    progress.finished("it", "ok")

    assert said.getvalue() == "[1/2] ok it\n"


def test_the_mean_of_what_is_done_tells_what_is_left() -> None:
    """Nothing is known before the first."""
    clock = Clock()
    mean = Mean(4, clock)
    assert mean.seconds() is None

    clock.now_s = 3.0
    mean.finished()
    assert mean.seconds() == 9.0
    mean.skip(1)
    assert mean.seconds() == 6.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "about 1 s"),
        (89.4, "about 89 s"),
        (90, "about 2 min"),
        (5399, "about 1 h 30 min"),
        (1e4, "about 2 h 47 min"),
    ],
)
def test_a_time_is_said_as_a_person_says_it(seconds: float, text: str) -> None:
    """No more exact than it is."""
    assert as_text(seconds) == text
