"""Nobody is killed on a design's word alone."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from miniatures import Run, manifest

from upheld.history import events
from upheld.history.marks import Happening
from upheld.nemesis import membership
from upheld.nemesis.membership import _workers, start_another, switch_back
from upheld.supervisor.instance import Instance
from upheld.supervisor.session import INSTANCE_TAG
from upheld.verdicts import AdapterBreach, MarkMissed

TRIAL: Any = SimpleNamespace(manifest=SimpleNamespace(name="liar"))


@pytest.fixture
def instance(tmp_path: Path) -> Any:
    """Yield an instance that runs."""
    made = Instance(manifest("", command=[sys.executable, "-c", "input()"]), Run(), tmp_path)
    yield made
    made.kill()


def test_a_worker_is_a_process_of_its_instance(instance: Instance) -> None:
    """A number that no process has is passed over."""
    own = instance.pids()

    found = _workers(TRIAL, instance, [*own, 0, -1, 1 << 22, 1 << 80])

    assert [process.pid for process in found] == own


@pytest.mark.parametrize("pid", [1, os.getpid(), os.getppid()], ids=["init", "harness", "caller"])
def test_a_foreign_process_is_refused(instance: Instance, pid: int) -> None:
    """It is named, and nothing is signalled."""
    with pytest.raises(AdapterBreach, match=f"liar names process {pid} as a worker"):
        _workers(TRIAL, instance, [*instance.pids(), pid])


def test_a_worker_that_a_cluster_manager_has_started_is_known_by_its_tag(
    instance: Instance,
) -> None:
    """It is below no process of the instance."""
    environment = os.environ | {INSTANCE_TAG: instance._session.tag}
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment
    ) as worker:
        found = _workers(TRIAL, instance, [worker.pid])
        worker.kill()

    assert [process.pid for process in found] == [worker.pid]


def test_the_guard_and_the_reaper_are_foreign(instance: Instance) -> None:
    """They are the harness's."""
    for pid in (instance._process.guard, instance._process.family.reaper):
        with pytest.raises(AdapterBreach, match="no process of this instance"):
            _workers(TRIAL, instance, [pid])


def test_a_cluster_that_is_back_after_its_session_meets_no_old_member() -> None:
    """There is no mark, and no order."""
    left = events.Instance(at_ms=100, application="ledger", name="a", event="inactive", detail="")
    trial: Any = SimpleNamespace(now_ms=5_100, history=SimpleNamespace(of=lambda _: iter([left])))
    application: Any = SimpleNamespace(session_timeout_ms=5_000)

    with pytest.raises(MarkMissed, match="away for 5000 ms, longer than its session"):
        switch_back(trial, application, within_ms=1_000)


@pytest.mark.parametrize(
    ("declares", "group", "shares", "is_seen"),
    [
        (["scale"], "orders", True, True),
        (None, "orders", True, True),  # without an adapter it has declared nothing
        ([], "orders", True, False),  # it says that it runs as one instance
        (["scale"], "orders", False, False),
        (["scale"], None, True, False),
    ],
)
def test_a_second_deployment_may_be_one_more_instance(
    declares: list[str] | None,
    group: str | None,
    monkeypatch: pytest.MonkeyPatch,
    *,
    shares: bool,
    is_seen: bool,
) -> None:
    """Kafka shares the input among members; who declares to be one notices the other."""
    sharing = SimpleNamespace(
        is_reached=lambda: shares, holds_of_members=lambda: shares, held=[("in-0",), ("in-1",)]
    )
    monkeypatch.setattr(membership, "_Sharing", lambda *_: sharing)
    running: dict[str, Any] = {"a": SimpleNamespace(is_over=False, failed=None)}
    marks: list[Happening] = []

    def start(_: object, name: str, __: object) -> Any:
        running[name] = SimpleNamespace(is_over=False, failed=None)
        return running[name]

    trial: Any = SimpleNamespace(
        instances=SimpleNamespace(start=start, kill=lambda _, name: running.pop(name)),
        recorder=SimpleNamespace(wait=lambda *_: False),
        waits=SimpleNamespace(settle=lambda _: None),
        mark=lambda happening, **_: marks.append(happening),
        manifest=SimpleNamespace(capabilities=declares or [], application=declares is None),
    )
    application: Any = SimpleNamespace(running=running, group=group)

    start_another(trial, application)

    assert marks == [Happening.SECOND_DEPLOYMENT, *[Happening.INPUT_SHARED] * is_seen]
    assert running == {}
