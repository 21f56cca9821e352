"""`upheld judge` keeps no history, and says how to judge one again."""

import gc
import shlex
from pathlib import Path
from typing import Any

import pytest
from stories import duplicated, right
from uncollected import uncollected

from upheld.cli import main, replay
from upheld.history import History
from upheld.judging.rejudge import Judgement


def test_a_history_is_gone_when_the_next_one_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A history keeps the views of it, which have the history."""
    gc.collect()
    paths = [right().recorded(tmp_path / f"{number}.jsonl") for number in range(3)]
    paths.append(duplicated().recorded(tmp_path / "wrong.jsonl", "violated"))
    alive: list[int] = []
    judge = replay.judge

    def judged(*asked: Any) -> Judgement:
        alive.append(sum(isinstance(each, History) for each in gc.get_objects()))
        return judge(*asked)

    monkeypatch.setattr(replay, "judge", judged)

    with uncollected():
        assert main(["judge", "--quiet", *map(str, paths)]) == 1
    assert alive == [0] * len(paths)


def test_the_command_on_a_card_judges_the_same_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names each model, and a shell takes a path with brackets as it is."""
    model = tmp_path / "the model.py"
    model.write_text("from upheld.models import Map\nTOTALS = Map(lambda order: [])\n")
    path = duplicated().recorded(tmp_path / "G1.story[ledger-exactly_once].jsonl", "violated")
    asked = ["judge", "--model", str(model), str(path)]

    assert main(asked) == 1
    said = capsys.readouterr().out
    (again,) = [line for line in said.splitlines() if line.startswith("  again ")]
    assert shlex.split(again)[2:] == asked
    assert "'" in again.partition("[")[0]
