from types import SimpleNamespace
from typing import Any

import pytest

from upheld.history.marks import Happening
from upheld.nemesis import pauses
from upheld.verdicts import MarkMissed


def attempt(log: list[str], *, is_decided: bool) -> Any:
    """Return a trial that tells what is done; its broker may decide nothing."""
    return SimpleNamespace(
        now_ms=0,
        waits=SimpleNamespace(decided_s=lambda _: 3.0),
        probes=SimpleNamespace(all_decided=lambda _: is_decided),
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


def test_the_instance_goes_on_when_its_transaction_is_aborted(
    log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark is left before the instance can do anything."""
    monkeypatch.setattr(pauses, "fate_of", lambda *_: "abort")

    pauses.sleep_through_abort(attempt(log, is_decided=True), SimpleNamespace())

    assert log == ["TRANSACTION_OPEN", "SLEPT_THROUGH_ABORT", "resume"]


@pytest.mark.parametrize(
    ("is_decided", "fate", "said"),
    [(False, None, "did not abort"), (True, "commit", "was committed"), (True, None, "committed")],
)
def test_no_mark_where_the_broker_aborts_nothing(
    log: list[str],
    monkeypatch: pytest.MonkeyPatch,
    is_decided: bool,
    fate: str | None,
    said: str,
) -> None:
    """The fault did not happen, so the row proves nothing and is tried again."""
    monkeypatch.setattr(pauses, "fate_of", lambda *_: fate)

    with pytest.raises(MarkMissed, match=said):
        pauses.sleep_through_abort(attempt(log, is_decided=is_decided), SimpleNamespace())

    assert log == ["TRANSACTION_OPEN"]
