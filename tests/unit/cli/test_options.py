"""The options of `upheld run` reach the run, and its end says their results.

No Kafka is started.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from upheld import cli
from upheld.cli import run
from upheld.report import Summary, Writer
from upheld.runner.choice import Choice


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Choice]:
    """Return the choices of runs in turn; each run is interrupted at once."""
    found: list[Choice] = []

    def judge(_: object, choice: Choice, *__: object) -> Any:
        found.append(choice)
        return SimpleNamespace(summary=None, interrupted=True)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "judge_in_turn", judge)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        monkeypatch.setenv(name, "")  # a run takes them away, and here they come back
    return found


def test_the_limits_of_a_run_reach_it(chosen: list[Choice]) -> None:
    """--fail-fast, --repeat and both limits are those of the choice."""
    options = ["--fail-fast", "--repeat", "2", "--max-seconds", "0.5", "--max-memory-mb", "300"]

    assert cli.main(["run", "--design", "plain", *options]) == 130

    (choice,) = chosen
    assert (choice.fail_fast, choice.repeat, choice.max_seconds, choice.max_memory_mb) == (
        True,
        2,
        0.5,
        300,
    )


def test_a_run_without_limits_has_none(chosen: list[Choice]) -> None:
    """Each row is judged once, to the end."""
    assert cli.main(["run", "--design", "plain"]) == 130

    (choice,) = chosen
    assert (choice.fail_fast, choice.repeat, choice.max_seconds, choice.max_memory_mb) == (
        False,
        1,
        None,
        None,
    )


def summary(**fields: Any) -> Summary:
    """Return the summary of a run in which a row of two was upheld."""
    return Summary.model_validate(
        {
            "partial": False,
            "upheld": "1",
            "seed": 1,
            "broker": "no 1",
            "broker_why": "a test",
            "versions": {},
            "depth": "core",
            "slice": "3/8",
            "promised": {"plain": 5},
            "chosen": {"plain": 2},
            "judged": {"plain": 1},
            "verdicts": {"upheld": 1},
            "known_failures": 0,
            "untested": [],
            "seconds": 1.0,
            "median_seconds": 1.0,
            "peak_memory_mb": 300,
            "exit_code": 1,
        }
        | fields
    )


def test_a_card_repeats_what_narrowed_the_run(chosen: list[Choice]) -> None:
    """Without it a scenario of one program would be repeated on another one."""
    assert cli.main(["run", "--design", "plain", "--program", "relay"]) == 130
    assert cli.main(["run", "--design", "plain"]) == 130

    assert [choice.narrowed for choice in chosen] == [" --program relay", ""]


LIMITED = """
name = "mine"
version = "1"
command = ["true"]
programs = ["ledger"]
modes = ["exactly_once"]
cannot = ["name-topics", "follow-new-partitions"]
"""


def test_strict_tells_the_limits_that_are_new(chosen: list[Choice], tmp_path: Path) -> None:
    """Limits that the baseline had too are accepted.

    A folder and its report are one baseline.
    """
    (tmp_path / "design.toml").write_text(LIMITED)
    (tmp_path / "old").mkdir()
    writer = Writer(tmp_path / "old")
    writer.write(summary(cannot={"mine": ["name-topics"]}))
    writer.close()

    for baseline in ("old", "old/report.jsonl"):
        assert cli.main(["run", ".", "--strict", baseline]) == 130

        (said,) = chosen.pop().new_limits
        assert said.startswith("--strict: mine cannot read partitions that its input gets")
        assert said.endswith("it takes away that new partitions are read from their start")


def test_without_strict_no_limit_is_new(chosen: list[Choice], tmp_path: Path) -> None:
    """A design may declare what it likes; a baseline that is none is refused."""
    (tmp_path / "design.toml").write_text(LIMITED)

    assert cli.main(["run", "."]) == 130
    choice = chosen.pop()
    assert (choice.new_limits, choice.is_strict) == ([], False)
    assert cli.main(["run", ".", "--strict", "design.toml"]) == 4


def test_strict_alone_needs_no_baseline(chosen: list[Choice], tmp_path: Path) -> None:
    """Then no limit is new, and what is unsupported has to be declared."""
    (tmp_path / "design.toml").write_text(LIMITED)

    assert cli.main(["run", ".", "--strict"]) == 130
    choice = chosen.pop()
    assert (choice.new_limits, choice.is_strict) == ([], True)


def test_the_last_lines_say_what_was_broken_and_left_out(tmp_path: Path) -> None:
    """The end names a limit that was broken, and the number of rows left out.

    It names them only where they are true.
    """
    said = run.closing(summary(partial=True, limits_broken=["0.6 s of at most 0.5 s"]), tmp_path)

    assert "judged of promised rows: plain 1 of 5 (core and slice 3/8)" in said
    assert "limits broken: 0.6 s of at most 0.5 s" in said
    assert "partial: 1 of 2 rows were judged" in said
    quiet = run.closing(summary(), tmp_path)
    assert "limits broken" not in quiet
    assert "partial" not in quiet
