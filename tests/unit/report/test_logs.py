"""The message of a log line is kept, whatever its library puts before it."""

from pathlib import Path

import pytest

from upheld.report.logs import COLUMNS, last_lines, parts_of

THREAD = "kafka-streams-exec-0-test-store-6d676cf0-3910-4c25-bfad-ea2b98953db3-StreamThread-9"
DAY = "2026-11-27"
# The library -> a line that it writes, and its parts.
LINES = {
    "log4j": (
        f"[{DAY} 10:11:12,345] INFO [{THREAD}] Now in ERROR (org.apache.kafka.streams.Kafka)",
        ("10:11:12.345", "INFO", "Now in ERROR (org.apache.kafka.streams.Kafka)"),
    ),
    "logback": (
        f"10:11:12.345 [{THREAD}] ERROR org.apache.kafka.streams.TaskExecutor -- it died",
        ("10:11:12.345", "ERROR", "TaskExecutor: it died"),
    ),
    "a client in Java": (
        "10:11:12.345 [main] WARN  org.apache.Coordinator - [Consumer clientId=a] left",
        ("10:11:12.345", "WARN", "Coordinator: [Consumer clientId=a] left"),
    ),
    "Flink": (
        f"{DAY} 10:11:12,345 INFO  org.apache.flink.Task [] - Source (1/1) switched to FAILED",
        ("10:11:12.345", "INFO", "Task: Source (1/1) switched to FAILED"),
    ),
    "Spark": (
        "26/11/27 10:11:12 WARN TaskSetManager: Lost task 0.0",
        ("10:11:12", "WARN", "TaskSetManager: Lost task 0.0"),
    ),
    "Python": (
        f"{DAY} 10:11:12,345 - app.worker - CRITICAL - no broker",
        ("10:11:12.345", "FATAL", "no broker"),
    ),
    "Python without a format": ("ERROR:root:it broke", ("", "ERROR", "root:it broke")),
    "Faust": (
        f"[{DAY} 10:11:12,345] [12345] [ERROR] [^Worker]: Error: boom",
        ("10:11:12.345", "ERROR", "Error: boom"),
    ),
    "Quix": (
        f"[{DAY} 10:11:12,345] [INFO] [quixstreams] [12345] : Starting",
        ("10:11:12.345", "INFO", "Starting"),
    ),
    "Go": (
        "2026/11/27 10:11:12 [partition 3] fetch failed: EOF",
        ("10:11:12", "", "[partition 3] fetch failed: EOF"),
    ),
    "slog": (
        f'time={DAY}T10:11:12.345Z level=ERROR msg="fetch failed" broker=1',
        ("10:11:12.345", "ERROR", '"fetch failed" broker=1'),
    ),
    "Rust": (f"{DAY}T10:11:12.345678Z  WARN mine: late", ("10:11:12.345678", "WARN", "mine: late")),
    "librdkafka": (
        "%3|1795781803.914|FAIL|rdkafka#producer-1| [thrd:b:1/1]: b:1: Connect failed",
        ("", "ERROR", "FAIL rdkafka#producer-1: b:1: Connect failed"),
    ),
    "an exception": ("KeyError: 'error: info'", ("", "", "KeyError: 'error: info'")),
    "an error of a shell": ("error: no such file", ("", "", "error: no such file")),
    "a level alone": ("INFO", ("", "INFO", "INFO")),
    "JSON": ('{"level":"error"}', ("", "", '{"level":"error"}')),
}


@pytest.mark.parametrize(("line", "parts"), LINES.values(), ids=LINES)
def test_each_library_has_a_form_of_its_own(line: str, parts: tuple[str, str, str]) -> None:
    """The time has no date, the thread is left out, the logger is short."""
    assert parts_of(line) == parts


def test_columns(tmp_path: Path) -> None:
    """Times, levels and messages stand in columns, and a long message is wrapped."""
    said = "word " * 60
    log = tmp_path / "a.stderr"
    log.write_text(f"10:11:12.345 [{THREAD}] WARN  a.B - {said}\nException: it broke\n")

    first, second, third, fourth = last_lines(log)

    assert first.startswith("10:11:12.345  WARN   B: word word")
    assert second.startswith(f"{'':21}word")
    assert third.startswith(f"{'':21}word")
    assert fourth == f"{'':21}Exception: it broke"
    assert max(map(len, (first, second, third))) <= 21 + COLUMNS


def test_without_times_there_is_no_column(tmp_path: Path) -> None:
    """A log of plain sentences begins at the left."""
    log = tmp_path / "a.stderr"
    log.write_text("\n\none\ntwo\n\nthree\n")

    assert list(last_lines(log, 2)) == ["two", "three"]


def test_a_stack_trace_shows_its_exceptions(tmp_path: Path) -> None:
    """Its frames would fill the lines that there are."""
    log = tmp_path / "a.stderr"
    frames = "".join(f"\tat a.b.C.call(C.java:{number})\n" for number in range(30))
    log.write_text(f"Exception in x\n{frames}Caused by: no disk\n{frames}\t... 7 more\n")

    assert list(last_lines(log)) == ["Exception in x", "Caused by: no disk"]


def test_a_long_message_keeps_its_end(tmp_path: Path) -> None:
    """Its middle is left out, with a note; a secret is hidden."""
    log = tmp_path / "a.stderr"
    log.write_text(f"password=hunter2 {'x ' * 2000}the cause")

    said = " ".join(last_lines(log))

    assert said.endswith("the cause")
    assert "characters are left out" in said
    assert "hunter2" not in said
    assert len(said) < 800


def test_no_link_is_followed(tmp_path: Path) -> None:
    """Only a plain file is a log."""
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "a.stderr").symlink_to(tmp_path / "secret")

    assert list(last_lines(tmp_path / "a.stderr")) == []
    assert list(last_lines(tmp_path / "none")) == []


def numbered(path: Path, count: int) -> Path:
    """Write a log of so many numbered lines of ten bytes."""
    path.write_text("".join(f"line {number:>4}\n" for number in range(count)))
    return path


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (None, "96 97 98 99"),
        (500, "48 49 50 51 … 96 97 98 99"),
        (505, "49 50 51 52 … 96 97 98 99"),
        (0, "0 1 … 96 97 98 99"),
        (960, "94 95 96 97 98 99"),
        (1000, "96 97 98 99"),
        (5000, "96 97 98 99"),
    ],
)
def test_the_lines_around_a_moment_come_first(tmp_path: Path, at: int | None, shown: str) -> None:
    """Two stand before it and two after it; a sign says where lines are left out."""
    log = numbered(tmp_path / "a.stderr", 100)

    said = [line.removeprefix("line").strip() for line in last_lines(log, at=at)]

    assert " ".join(said) == shown


def test_a_moment_far_from_the_end_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of gigabytes costs no more than another one."""
    monkeypatch.setattr("upheld.report.logs.FAR_BYTES", 100)
    log = numbered(tmp_path / "a.stderr", 100)

    assert len(list(last_lines(log, at=500))) == 4
