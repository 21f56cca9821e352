"""How instances start and end, and which verdict that is."""

import weakref
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attempts import Attempt, FakeInstance, timeless

from upheld.errors import MachineProblem
from upheld.history import events
from upheld.history.events import Instance, Mark
from upheld.history.marks import Happening
from upheld.kafka.groups import Session
from upheld.protocol.messages import (
    Error,
    Failed,
    Message,
    Notice,
    Ready,
    StandingBy,
    Stopped,
    Unsupported,
)
from upheld.supervisor.instance import Noticed, Overdue
from upheld.trial.instances import Instances, Launch
from upheld.verdicts import AdapterBreach, NotOffered, Violated

REFUSALS: list[Message] = [
    Error(definite=True, message="no"),
    Failed(kind="conflict", message="no"),
    Unsupported(reason="no"),
]


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    """Make an attempt in which time passes by sleeps alone."""
    return timeless(tmp_path, monkeypatch)


@pytest.fixture
def queried() -> list[str]:
    """List the keys that instances are asked for."""
    return []


@pytest.fixture
def instances(attempt: Attempt, queried: list[str]) -> Instances:
    """Return the instances of the attempt."""
    probes: Any = SimpleNamespace(query=lambda _, key: queried.append(key))
    return Instances(attempt.recorder, attempt.rig, attempt.manifest, probes)


def test_the_instances_of_an_attempt_are_in_no_cycle(tmp_path: Path) -> None:
    """They go with it, and so does its history, without a collection of garbage."""
    attempt = Attempt(tmp_path)
    probes: Any = SimpleNamespace()
    kept = weakref.ref(Instances(attempt.recorder, attempt.rig, attempt.manifest, probes))

    assert kept() is None


def happened(attempt: Attempt) -> list[str]:
    """Return the events of instances in the history."""
    return [event.event for event in attempt.history.of(Instance)]


def test_a_ready_instance_is_asked_for_the_first_keys(
    attempt: Attempt, instances: Instances, queried: list[str]
) -> None:
    """Its group is the application's, and a table that it names is the output."""
    application = attempt.application("pulse")
    application.keys = [f"robot-{number}" for number in range(20)]
    attempt.instance.replies = [Ready(consumer_group="group", table="changelog")]

    assert instances.start(application) is attempt.instance

    assert (application.group, application.table, application.partitions) == (
        "group",
        "changelog",
        8,
    )
    assert queried == application.keys[:16]
    assert happened(attempt) == ["started", "ready"]


def test_a_start_with_other_settings_asks_for_them_and_marks_them(
    attempt: Attempt, instances: Instances
) -> None:
    """The application was declared with others, which a later start has again."""
    application = attempt.application()

    instances.start(application, launch=Launch(mode="at_least_once", commit_interval_ms=2_000))
    instances.start(application, "b")

    changed, usual = (asked[1] for asked in attempt.instance.asked)
    assert application.mode == "exactly_once"
    assert (changed.mode, changed.parameters["commit_interval_ms"]) == ("at_least_once", 2_000)
    assert usual.mode == "exactly_once"
    assert usual.parameters == application.event.parameters
    assert [mark.fault for mark in attempt.history.of(Mark)] == [
        "the mode becomes at_least_once",
        "the commit interval becomes 2000 ms",
    ]


@pytest.mark.parametrize("table", ["changelog", None])
def test_small_segments_are_those_of_the_table_that_the_harness_made(
    attempt: Attempt, instances: Instances, table: str | None
) -> None:
    """A design whose table is a topic of its own does not offer the row.

    The row is given up as soon as the design says so.
    """
    application = attempt.application("pulse", rolls=True)
    attempt.instance.replies = [Ready(consumer_group="group", table=table)]

    with pytest.raises(NotOffered, match="a topic of its own") if table else nullcontext():
        instances.start(application)

    assert happened(attempt) == ["started", "ready"]


def test_the_session_of_a_group_is_set_where_it_is_the_groups_own(
    attempt: Attempt, instances: Instances
) -> None:
    """The session is set once, read back, and marked.

    Members learn it by their next heartbeats.
    """
    attempt.groups.has = Session("consumer", 45_000, 5_000)
    application = attempt.application()
    application.group_protocol = "consumer"

    instances.start(application)
    began_ms = attempt.recorder.now_ms
    instances.start(application, "b")

    ((_, request), _) = attempt.instance.asked
    assert request.group_protocol == "consumer"
    assert attempt.groups.has == Session("consumer", 2_000, 500)
    (mark,) = attempt.history.of(Mark)
    assert (mark.happening, mark.evidence) == (
        Happening.SESSION_SET,
        {"protocol": "consumer", "session_ms": 2_000},
    )
    assert attempt.recorder.now_ms == began_ms >= 5_000


def test_a_session_that_the_broker_does_not_set_is_the_machines(
    attempt: Attempt, instances: Instances
) -> None:
    """A deadline that hangs on it would blame the design."""
    attempt.groups.has = Session("streams", 45_000, 5_000)
    attempt.groups.obeys = False

    with pytest.raises(MachineProblem, match="still has another one"):
        instances.start(attempt.application())


@pytest.mark.parametrize("has", [Session("classic", 0, 0), None], ids=["classic", "unknown"])
def test_a_design_joins_by_the_protocol_that_it_is_told(
    attempt: Attempt, instances: Instances, has: Session | None
) -> None:
    """The design has declared that it can join by this protocol.

    If the design is told no protocol, its session is its own affair.
    """
    attempt.groups.has = has
    application = attempt.application()
    instances.start(application)
    application.group_protocol = "consumer"

    with pytest.raises(AdapterBreach, match="was to join its group by the protocol consumer"):
        instances.start(application, "b")
    assert not list(attempt.history.of(Mark))


def test_an_instance_is_told_how_it_is_launched(attempt: Attempt, instances: Instances) -> None:
    """A successor has the name of the dead instance, and a disk of its own."""
    application = attempt.application()

    instances.start(application, "b", Launch(in_place_of="a", apart=True, default_mode=True))

    ((_, request),) = attempt.instance.asked
    assert (request.instance, request.mode, request.standing_by) == ("a", None, False)
    assert request.state_dir == str(application.directory / "b")
    assert request.durable_dir == str(application.directory / "durable-b")


def test_an_instance_of_another_cluster_stands_by(attempt: Attempt, instances: Instances) -> None:
    """The cluster is in its application id."""
    attempt.instance.replies = [StandingBy()]

    instances.start(attempt.application(), "green", Launch(cluster="green", stands_by=True))

    ((_, request),) = attempt.instance.asked
    assert (request.application_id, request.standing_by) == ("trial-relay-green", True)
    assert happened(attempt) == ["started", "standing-by"]


@pytest.mark.parametrize("reply", REFUSALS)
def test_a_refusal_that_is_allowed_is_marked(
    attempt: Attempt, instances: Instances, reply: Message
) -> None:
    """It is no failure of the design."""
    attempt.instance.replies = [reply]

    assert instances.start(attempt.application(), launch=Launch(may_refuse=True)) is None

    (mark,) = attempt.history.of(Mark)
    assert (mark.happening, mark.evidence) == (Happening.START_REFUSED, {"said": "no"})


def test_what_is_said_unasked_is_recorded(attempt: Attempt, instances: Instances) -> None:
    """A notice has the time at which it was read, and a loud stop its fields."""
    where = {"topic": "app-input", "partition": 0}
    notice = Notice.model_validate({"kind": "offset-reset", **where, "from": 1, "to": 5})
    attempt.instance.notices.put(Noticed(notice, attempt.recorder.began + 0.25))
    attempt.instance.replies = [Failed(kind="offset-lost", message="it is gone", **where)]
    application = attempt.application()

    instances.start(application, launch=Launch(may_refuse=True))

    (said,) = attempt.history.of(events.Notice)
    assert (said.at_ms, said.name, said.code) == (250, "a", "offset-reset")
    assert (said.topic, said.partition, said.begin, said.end) == ("app-input", 0, 1, 5)
    *_, stop = attempt.history.of(events.Instance)
    assert stop.detail == "offset-lost: it is gone"
    assert stop.failure == events.Failure(kind="offset-lost", **where)


@pytest.mark.parametrize("happening", [Happening.INPUT_REMADE, Happening.BROKER_OUT_OF_REACH])
def test_a_failed_start_after_a_fault_is_the_designs(
    attempt: Attempt, instances: Instances, happening: Happening
) -> None:
    """The harness has struck a topic that was made anew, and no adapter is broken."""
    attempt.instance.replies = [Failed(kind="conflict", message="no")]
    attempt.recorder.mark(happening)

    with pytest.raises(Violated, match="does not start again after the fault: no"):
        instances.start(attempt.application())


def test_a_supervised_instance_may_stop_loudly_once(attempt: Attempt, instances: Instances) -> None:
    """The instance is taken away until its supervisor starts it again.

    The second time, the instance is stuck.
    """
    application = attempt.application()
    application.is_supervised = True
    application.running["a"] = instance = attempt.instance  # type: ignore[assignment]
    instance.failed = Failed(kind="storage", message="no broker")
    with pytest.raises(Violated, match="gave up"):  # no fault has begun
        instances.demand_alive(application)
    application.is_struck = True
    instance.exit_code = 1

    instances.demand_alive(application)

    assert (application.running, application.stopped) == ({}, ["a"])
    application.restarted.add("a")
    application.running["a"] = instance  # type: ignore[assignment]
    with pytest.raises(Violated, match="gave up"):
        instances.demand_alive(application)


@pytest.mark.parametrize("reply", REFUSALS[:2])
def test_a_failed_start_is_a_breach_unless_something_befell_it(
    attempt: Attempt, instances: Instances, reply: Message
) -> None:
    """Beside another instance, and after a fault, the design is to blame."""
    attempt.instance.replies = [reply]
    application = attempt.application()

    with pytest.raises(AdapterBreach, match="answered start with"):
        instances.start(application)
    with pytest.raises(Violated, match="does not start beside another: no"):
        instances.start(application, "b")
    instances.kill(application, "b")
    with pytest.raises(Violated, match="does not start again after the fault: no"):
        instances.start(application)


def test_what_a_design_does_not_support_is_not_offered(
    attempt: Attempt, instances: Instances
) -> None:
    """The reason is the design's own."""
    attempt.instance.replies = [Unsupported(reason="no such mode")]

    with pytest.raises(NotOffered, match="does not offer this: no such mode"):
        instances.start(attempt.application())


def test_a_dead_instance_is_found(attempt: Attempt, instances: Instances) -> None:
    """A failure is told apart from an exit without a word."""
    application = attempt.application()
    instances.start(application)
    instances.demand_alive(application)

    attempt.instance.exit_code = 3
    with pytest.raises(Violated, match="exited with 3 and no `failed`"):
        instances.demand_alive(application)
    attempt.instance.failed = Failed(kind="fenced", message="another one writes")
    with pytest.raises(Violated, match="gave up: fenced, another one writes"):
        instances.demand_alive(application)
    assert happened(attempt) == ["started", "ready", "exited", "failed"]


@pytest.mark.parametrize(("capabilities", "stops"), [((), 1), (("reusable",), 2)])
def test_only_what_still_runs_is_stopped_twice(
    attempt: Attempt, capabilities: tuple[str, ...], stops: int
) -> None:
    """An instance that is not reusable has ended after its first stop."""
    manifest = attempt.manifest_with(*capabilities)
    probes: Any = None
    instances = Instances(attempt.recorder, attempt.rig, manifest, probes)
    application = attempt.application()
    application.running["a"] = instance = as_running(Stopped())
    instance.manifest = manifest

    instances.stop(application, twice=True)

    assert len(instance.asked) == stops
    assert attempt.given_back == [instance]
    assert application.running == {}


@pytest.mark.parametrize("others", [False, True], ids=["alone", "beside others"])
@pytest.mark.parametrize("says_so", [False, True], ids=["silent", "says so"])
def test_an_instance_that_is_not_closed_in_time_is_late(
    attempt: Attempt,
    instances: Instances,
    monkeypatch: pytest.MonkeyPatch,
    *,
    others: bool,
    says_so: bool,
) -> None:
    """Its work is not done by the deadline, and the adapter is not to blame for that."""

    def stop(deadline_ms: int) -> Message:
        attempt.recorder.wait(deadline_ms / 1000, lambda: False)
        if says_so:
            return Error(definite=False, message="not flushed yet")
        raise Overdue("no answer to stop")

    application = attempt.application()
    application.running["a"] = instance = as_running(Stopped())
    if others:
        application.running["b"] = as_running(Stopped())
    monkeypatch.setattr(instance, "stop", stop)

    with pytest.raises(Violated) as violated:
        instances.stop(application)

    (anomaly,) = violated.value.anomalies
    assert anomaly.name == "late"
    assert "is not closed 10 s after stop" in anomaly.text


def test_an_adapter_that_refuses_a_stop_at_once_is_to_blame(
    attempt: Attempt, instances: Instances
) -> None:
    """It has not tried to finish its work."""
    application = attempt.application()
    application.running["a"] = as_running(Error(definite=True, message="no"))

    with pytest.raises(AdapterBreach, match="answered stop with error: no"):
        instances.stop(application)


def test_a_kill_is_counted(attempt: Attempt, instances: Instances) -> None:
    """The report says how often a row has killed."""
    application = attempt.application()
    application.running["a"] = as_running(Stopped())

    assert instances.kill(application) == [1, 2]

    assert instances.kills == 1
    (event,) = attempt.history.of(Instance)
    assert (event.event, event.detail) == ("killed", "2 processes")


def as_running(*replies: Message) -> Any:
    """Make an instance that has been started already."""
    return FakeInstance(*replies)
