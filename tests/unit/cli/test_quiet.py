"""With --quiet a command says what is wrong and its result, and nothing else."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from histories import Story

from upheld.cli import broker, main
from upheld.ui import console
from upheld.ui.console import MANNER, PlainConsole, announce, waiting
from upheld.ui.progress import Progress


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leave the manner of other tests as it was."""
    monkeypatch.setattr(MANNER, "is_terse", False)
    monkeypatch.chdir(tmp_path)


def test_what_is_right_is_not_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A piece that is not as it should be has its line, and a message stays."""
    monkeypatch.setattr(MANNER, "is_terse", True)
    with Progress(PlainConsole(), every_s=0.01) as progress:
        progress.begin(2, lambda: 60.0)
        progress.finished("right", "upheld", is_quiet=True)
        progress.finished("wrong", "violated")
        progress.message("a card")

    assert capsys.readouterr().out.split("\n") == ["[2/2] violated wrong", "a card", ""]


def test_nobody_is_told_what_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard error is left to problems."""
    for is_terse in (True, False):
        monkeypatch.setattr(MANNER, "is_terse", is_terse)
        announce("fetching")
        with waiting("it boots", after_s=0.0):
            console.threading.Event().wait(0.2)

    assert capsys.readouterr().err == "fetching\nupheld: it boots …\n"


def test_a_history_that_is_upheld_is_not_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A history that proves nothing is; the exit code is that without the option."""
    story = Story()
    story.names("app-entries", "app-balances")
    story.start()
    path = str(story.recorded(tmp_path / "h.jsonl"))
    code = main(["judge", path])
    loud = capsys.readouterr().out

    assert main(["judge", path, "--quiet"]) == code
    assert capsys.readouterr().out == ("" if code == 0 else loud)


def test_a_new_design_and_sound_features_are_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    """A hint is for a person."""
    assert main(["new", "mine", "--quiet"]) == 0
    assert main(["lint", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_a_new_design_as_json_names_its_files(capsys: pytest.CaptureFixture[str]) -> None:
    """A script goes on with them."""
    assert main(["new", "mine", "--json"]) == 0

    said = json.loads(capsys.readouterr().out)
    assert said["folder"] == "mine"
    assert all(Path(file).is_file() for file in said["files"])
    assert {Path(file).name for file in said["files"]} >= {"design.toml"}


def test_a_broker_as_json_says_where_it_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is one line, which is there before the command ends."""

    def ended(_: float) -> bool:
        raise KeyboardInterrupt

    def opened(*_: object) -> Any:
        return SimpleNamespace(kind="no", version="1", bootstrap="h:1", ended=ended)

    monkeypatch.setattr(broker, "opened_broker", opened)

    assert main(["broker", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "kind": "no",
        "version": "1",
        "bootstrap": "h:1",
    }
