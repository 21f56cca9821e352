"""`upheld judge` takes no more memory for many histories than for one."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from stories import duplicated, right

from upheld.cli import main, replay
from upheld.history import History
from upheld.judging.rejudge import Judgement


@pytest.fixture(autouse=True)
def _no_collection_by_itself() -> Iterator[None]:
    """Let Python look for garbage only where it is told to."""
    gc.disable()
    yield
    gc.enable()


def test_a_history_is_gone_when_the_next_one_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A history keeps the views of it, which have the history."""
    gc.collect()
    paths = [right().recorded(tmp_path / f"{number}.jsonl") for number in range(3)]
    paths.append(duplicated().recorded(tmp_path / "wrong.jsonl", "violated"))
    alive: list[int] = []
    judge = replay.judge

    def judged(path: Path, picture: Path | None) -> Judgement:
        alive.append(sum(isinstance(each, History) for each in gc.get_objects()))
        return judge(path, picture)

    monkeypatch.setattr(replay, "judge", judged)

    assert main(["judge", "--quiet", *map(str, paths)]) == 1
    assert alive == [0] * len(paths)
