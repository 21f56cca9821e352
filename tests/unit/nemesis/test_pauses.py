from types import SimpleNamespace
from typing import Any

import pytest

from upheld.history.marks import Happening
from upheld.nemesis import pauses
from upheld.verdicts import MarkMissed


def attempt(log: list[str], *, is_aborted: bool) -> Any:
    """Return a trial that tells what is done; its broker may abort nothing."""
    return SimpleNamespace(
        now_ms=0,
        waits=SimpleNamespace(decided_s=lambda _: 3.0),
        probes=SimpleNamespace(all_decided=lambda _: is_aborted),
        recorder=SimpleNamespace(wait=lambda _, reached: reached()),
        mark=lambda happening, **_: log.append(happening.name),
        instances=SimpleNamespace(resume=lambda _: log.append("resume")),
    )


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is done; the pause at a moment is told too."""
    done: list[str] = []
    monkeypatch.setattr(pauses, "transaction_open", lambda *_: Happening.TRANSACTION_OPEN)
    monkeypatch.setattr(pauses, "pause_at", lambda _, __, moment: done.append(moment.name))
    return done


def test_the_instance_goes_on_when_its_transaction_is_aborted(log: list[str]) -> None:
    """The mark is left before the instance can do anything."""
    pauses.sleep_through_abort(attempt(log, is_aborted=True), SimpleNamespace())

    assert log == ["TRANSACTION_OPEN", "SLEPT_THROUGH_ABORT", "resume"]


def test_no_mark_where_the_broker_aborts_nothing(log: list[str]) -> None:
    """The fault did not happen, so the row proves nothing and is tried again."""
    with pytest.raises(MarkMissed, match="did not abort"):
        pauses.sleep_through_abort(attempt(log, is_aborted=False), SimpleNamespace())

    assert log == ["TRANSACTION_OPEN"]
