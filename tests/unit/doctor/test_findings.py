"""Each finding is named by what was seen, and each trouble has a way out."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from upheld.doctor.completed import NOT_NAMED, Addition
from upheld.doctor.findings import Case, Finding, findings, is_judgeable, mended
from upheld.doctor.seen import Commits, End, Group, Outputs, Query, Seen, Topics, Visit
from upheld.history.events import Record
from upheld.protocol.manifest import Manifest, load

GIVEN = {"orders": "doctor-1-orders", "costs": "doctor-1-costs"}
GROUP = Group(protocol="classic", members=1, session_timeout_ms=6_000)
TOPICS = Topics(given=GIVEN, read=("doctor-1-orders",), written=("doctor-1-costs",))
SOUND: dict[str, Any] = {
    "application_id": "doctor-1",
    "ready_by": "group",
    "ready_s": 1.0,
    "ran_s": 3.0,
    "groups": {"doctor-1": GROUP},
    "transactions": {"doctor-1-a": 10_000},
    "isolation": ("read_committed",),
    "reset": "earliest",
    "topics": TOPICS,
    "commits": Commits(by=("txn_offset_commit",), count=3, usual_gap_ms=100, done=60, due=60),
    "outputs": {"costs": Outputs(count=60)},
    "end": End(signal="SIGTERM", seconds=0.1, code=0),
}
ROOT = Path(__file__).parents[3]
ORDERS = load(str(ROOT / "examples" / "orders"))
CHECKPOINTS = load(str(ROOT / "tests" / "support" / "applications" / "checkpoints"))
# What is seen of an application that has no group.
APART: dict[str, Any] = {
    "groups": {},
    "transactions": {},
    "commits": Commits(due=60),
    "outputs": {"costs": Outputs(count=60)},
}


def found(design: Manifest = ORDERS, **changes: Any) -> list[Finding]:
    """Return what is found in an example, if it had been seen to do this."""
    seen = Seen.model_validate(SOUND | changes)
    return findings(Case(design, Visit(seen, (), ())))


def troubles(design: Manifest = ORDERS, **changes: Any) -> dict[str, str]:
    """Return the findings that are not fine, with their marks."""
    return {each.code: each.mark for each in found(design, **changes) if each.mark != "fine"}


def test_an_application_without_mistakes_can_be_judged() -> None:
    """All that it does is named, and nothing has to be done."""
    for fine in (found(), found(**ALERTING), found(query=ANSWER)):
        assert is_judgeable(fine)
        assert [each.way_out for each in fine] == [""] * len(fine)


UNKNOWN = Topics(given=GIVEN, unknown=("orders",))
ELSEWHERE = Topics(given=GIVEN, read=("doctor-1-orders",), written=("costs",))
MAKING = TOPICS.model_copy(update={"created": ("doctor-1-totals-changelog", "doctor-1-costs")})
SHARING = TOPICS.model_copy(update={"created": ("totals-changelog",)})
NEVER: dict[str, Any] = {"ready_s": None, "commits": Commits(), "outputs": {}, "reset": None}
NOTHING: dict[str, Any] = {"outputs": {"costs": Outputs()}}
UNREADABLE = Outputs(count=60, unreadable=60, first_unreadable="{'a'")
ALERTS = GIVEN | {"alerts": "doctor-1-alerts"}
BOTH = ("doctor-1-costs", "doctor-1-alerts")
ALERTING: dict[str, Any] = {
    "design": load(str(ROOT / "examples" / "alerts")),
    "topics": Topics(given=ALERTS, read=("doctor-1-orders",), written=BOTH),
    "outputs": {"costs": Outputs(count=60), "alerts": Outputs(count=9)},
}
OUTSIDE_TOPICS = ALERTING["topics"].model_copy(update={"outside": ("doctor-1-alerts",)})
COSTS_ALONE = ALERTING["topics"].model_copy(update={"written": ("doctor-1-costs", "alerts")})
PATIENT = Group(protocol="classic", members=1, session_timeout_ms=45_000)
OUTSIDE = Commits(by=("offset_commit",), count=3, done=60, due=60)
ANSWER = Query(
    output="costs",
    key="alice",
    address="http://127.0.0.1:1/costs/alice",
    status=200,
    said='{"cost": 1}',
    last='{"cost": 1}',
    fits=True,
)
TROUBLES = [
    ("exits", "wrong", NEVER | {"ended_early": 3, "end": None, "topics": Topics(given=GIVEN)}),
    ("never-ready", "wrong", NEVER),
    ("no-kafka", "wrong", {"breach": "a client sent a request of API 5635 version 769"}),
    ("topic", "wrong", {"topics": UNKNOWN}),
    ("topic", "wrong", {"topics": Topics(given=GIVEN, read=("orders",))}),
    ("topic", "wrong", {"topics": Topics(given=GIVEN)}),
    ("output-topic", "wrong", {"topics": ELSEWHERE}),
    ("internal-topics", "wrong", {"topics": MAKING}),
    ("shape", "note", {"outputs": {"costs": Outputs(count=8, increasing=("$.orders",))}}),
    ("internal-topics", "wrong", {"topics": SHARING}),
    ("output-topic", "wrong", ALERTING | {"topics": COSTS_ALONE}),
    ("no-output", "wrong", {"outputs": {"costs": Outputs()}}),
    ("no-output", "wrong", ALERTING | {"outputs": {}}),
    ("no-output", "note", ALERTING | {"outputs": {"costs": Outputs(count=60)}}),
    ("format", "wrong", {"outputs": {"costs": UNREADABLE}}),
    ("format", "wrong", ALERTING | {"outputs": ALERTING["outputs"] | {"alerts": UNREADABLE}}),
    ("outside-transaction", "note", ALERTING | {"topics": OUTSIDE_TOPICS}),
    ("group", "wrong", {"groups": {"doctor-1-v2": GROUP}}),
    ("group", "wrong", {"groups": {"orders": GROUP}}),
    ("no-group", "wrong", {"groups": {}, "is_stalled": True}),
    ("session", "note", {"groups": {"doctor-1": PATIENT}}),
    ("mode", "note", {"transactions": {}}),
    ("transactional-id", "wrong", {"transactions": {"orders-a": 10_000}}),
    ("transaction-timeout", "note", {"transactions": {"doctor-1-a": 60_000}}),
    ("read-uncommitted", "note", {"isolation": ("read_uncommitted",)}),
    ("read-uncommitted", "wrong", {"outputs": {"costs": Outputs(count=60, aborted=2)}}),
    ("reset-latest", "wrong", {"reset": "latest"}),
    ("auto-commit", "note", {"commits": OUTSIDE}),
    ("auto-commit", "note", {"commits": OUTSIDE.model_copy(update={"ahead": True})}),
    ("dies", "wrong", {"ended_early": 1, "end": None}),
    ("stalled", "wrong", {"is_stalled": True}),
    ("ignores-stop", "wrong", {"end": End(signal="SIGTERM", seconds=10, code=None)}),
    ("stop", "note", {"end": End(signal="SIGTERM", seconds=1, code=-15)}),
    ("stop", "note", {"end": End(signal="SIGTERM", seconds=1, code=143, members=1)}),
    ("stop", "note", {"end": End(signal="SIGTERM", seconds=1, code=0, members=1)}),
    ("peer", "wrong", {"peers": ("10.0.0.1:6379",)}),
    ("refused", "wrong", {"refused": ("10.0.0.1:6379", "redis.prod")}),
    ("query", "wrong", {"query": ANSWER.model_copy(update={"status": 0, "fits": False})}),
    ("query", "wrong", {"query": ANSWER.model_copy(update={"status": 404, "fits": False})}),
    ("query", "wrong", {"query": ANSWER.model_copy(update={"fits": False})}),
]


@pytest.mark.parametrize(("code", "mark", "changes"), TROUBLES)
def test_a_trouble_is_named_alone(code: str, mark: str, changes: dict[str, Any]) -> None:
    """Nothing else is found to be wrong, and the reader is told what to do."""
    assert troubles(**changes) == {code: mark}
    assert [
        each.code for each in found(**changes) if each.mark != "fine" and not each.way_out
    ] == []
    assert is_judgeable(found(**changes)) == (mark == "note")


MODELLED = load(str(ROOT / "examples" / "orders" / "modelled"))
ORDER = b'{"id": "o-1", "account": "a", "quantity": 2, "price_cents": 3}'


def modelled(cost: int, **changes: Any) -> list[Finding]:
    """Return what is found of a model, if one order was read and this was written."""
    seen = Seen.model_validate(SOUND | changes)
    order = Record("doctor-1-orders", 0, 0, 0, b"a", ORDER)
    written = json.dumps({"order": "o-1", "cost_cents": cost, "at": 1.5}).encode()
    output = Record("doctor-1-costs", 0, 0, 0, b"a", written)
    case = Case(MODELLED, Visit(seen, (order,), (output,)))
    return [each for each in findings(case) if each.code == "model"]


def test_a_model_that_disagrees_is_named_with_the_record() -> None:
    """The reader sees the first record, and what both say."""
    (right,) = modelled(6)
    (wrong,) = modelled(5)

    assert (right.mark, wrong.mark) == ("fine", "wrong")
    assert "doctor-1-orders-0@0" in wrong.text
    assert "upheld contract" in wrong.way_out
    assert modelled(5, is_stalled=True) == modelled(5, reset="latest") == []


def test_the_page_has_each_trouble_with_its_mark() -> None:
    """A reader finds there what a finding means."""
    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    table = page.partition("## What each finding means")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    written = {
        (code, mark) for codes, mark, *_ in rows for code in re.findall(r"`([\w-]+)`", codes)
    }
    marks: dict[str, set[str]] = {"model": {"✗"}, "increasing": {"!"}}
    for code, mark, _ in TROUBLES:
        marks.setdefault(code, set()).add({"wrong": "✗", "note": "!"}[mark])

    assert written == {(code, " or ".join(sorted(m, reverse=True))) for code, m in marks.items()}


@pytest.mark.parametrize(
    ("shape", "declared", "count", "is_named"),
    [
        ("fold", None, 50, True),
        ("fold", None, 60, False),
        ("fold", "$.n", 50, False),
        ("map", None, 50, False),
    ],
)
def test_a_number_that_grows_is_named_for_a_fold_that_skips_states(
    shape: str, declared: str | None, count: int, *, is_named: bool
) -> None:
    """A fold that has declared one needs no other, and a map has no states."""
    assert ORDERS.application
    table = ORDERS.application.output["costs"].model_copy(update={"increasing": declared})
    subject = ORDERS.application.model_copy(update={"shape": shape, "output": {"costs": table}})
    design = ORDERS.model_copy(update={"application": subject})
    seen = found(design, outputs={"costs": Outputs(count=count, increasing=("$.count", "$.total"))})
    named = [each for each in seen if each.code == "increasing"]

    assert bool(named) == is_named
    assert not named or 'increasing = "$.count" in [output.costs]' in named[0].way_out


def test_a_commit_that_waits_for_its_outputs_is_fine() -> None:
    """The doctor held the outputs back, and no commit came before them."""
    commits = OUTSIDE.model_copy(update={"ahead": False})
    said = {each.code: each.text for each in found(commits=commits, transactions={})}

    assert "after its outputs" in said["commits"]


def test_the_way_out_of_a_wrong_group_is_the_line_to_write() -> None:
    """If the group hangs on the application's id, design.toml can name it."""
    ways = {each.code: each.way_out for each in found(groups={"doctor-1-v2": GROUP})}

    assert ways["group"] == 'design.toml: group = "{application_id}-v2"'


def test_a_group_that_the_file_does_not_name_yet_is_the_one_that_it_joins() -> None:
    """The doctor writes it, so there is nothing to mend."""
    assert ORDERS.application
    as_deployed = ORDERS.application.model_copy(update={"names": "fixed", "group": NOT_NAMED})
    design = ORDERS.model_copy(update={"application": as_deployed})
    said = {each.code: each for each in found(design, groups={"order-service": GROUP})}

    assert said["group"].mark == "fine"
    assert "order-service" in said["group"].text


def test_the_way_out_of_an_undeclared_topic_is_the_line_to_write() -> None:
    """Topics that it was given are none of its own, even if it asks to make them."""
    ways = {each.code: each.way_out for each in found(topics=MAKING)}
    line = 'internal_topics = ["{application_id}-totals-changelog"]'

    assert ways["internal-topics"] == f"design.toml: {line}"


def test_what_a_written_line_mends_is_fine() -> None:
    """A line for each trouble of its kind: one that is left keeps its way out."""
    line = Addition((), "internal_topics", ["{application_id}-totals-changelog"])
    before = found(topics=MAKING)

    after = {each.code: each for each in mended(before, [line])}
    assert {each.code for each in before if each.mark == "wrong"} == {"internal-topics"}
    assert after["internal-topics"].mark == "fine"
    assert after["internal-topics"].text.endswith("; the file says so now")
    assert mended(before, [Addition((), "name", "shop")]) == before
    assert mended([*before, *before], [line]) == [*before, *before]


def test_a_declared_topic_is_fine() -> None:
    """It is named, and nothing has to be done."""
    assert ORDERS.application
    update = {"internal_topics": ("{application_id}-totals-changelog",)}
    application = ORDERS.application.model_copy(update=update)
    declaring = ORDERS.model_copy(update={"application": application})
    said = {each.code: each for each in found(declaring, topics=MAKING)}

    assert said["internal-topics"].mark == "fine"
    assert said["internal-topics"].text == "it makes doctor-1-totals-changelog for itself"


def test_a_jvm_that_obeys_the_signal_is_fine() -> None:
    """It ends with 128 and the number of the signal, once its shutdown hooks have run."""
    said = {each.code: each for each in found(end=End(signal="SIGTERM", seconds=1, code=143))}

    assert said["stop"].mark == "fine"
    assert said["stop"].text == "it ended with 143 in 1.0 s after SIGTERM, as a JVM does"
    assert troubles(end=End(signal="SIGINT", seconds=1, code=143)) == {"stop": "note"}


def test_the_last_line_of_a_log_is_told() -> None:
    """It mostly says why a process died."""
    said = {
        each.code: each.text for each in found(ended_early=1, end=None, log=("KeyError: 'id'",))
    }

    assert said["dies"].endswith("KeyError: 'id'")


def test_progress_in_no_group_is_no_mistake() -> None:
    """Its outputs are waited for, and its offsets are not looked at."""
    fine = found(CHECKPOINTS, **APART)

    assert is_judgeable(fine)
    assert [each.code for each in fine if each.mark != "fine"] == []
    said = {each.code: each.text for each in fine}
    assert said["group"].startswith('its progress is in no group (progress = "none")')
    assert said["reset"] == "its first start began at the first record"


@pytest.mark.parametrize(
    ("code", "changes", "said"),
    [
        (
            "no-output",
            {"outputs": {"costs": Outputs()}, "is_stalled": True},
            "it was given 60 records",
        ),
        ("stalled", {"is_stalled": True}, "60 outputs of 60 records are visible"),
        ("dies", {"ended_early": 1, "end": None}, "60 outputs of 60 records are visible"),
        ("reset-latest", {"reset": "latest"}, "its first start began at the end of the input"),
    ],
)
def test_a_trouble_without_a_group_is_known_by_outputs(
    code: str, changes: dict[str, Any], said: str
) -> None:
    """It is named alone, in words that speak of no commits."""
    (trouble,) = (each for each in found(CHECKPOINTS, **APART | changes) if each.mark != "fine")

    assert (trouble.code, trouble.mark) == (code, "wrong")
    assert said in trouble.text
    assert trouble.way_out


@pytest.mark.parametrize("progress", ["group-leads", "none"])
def test_offsets_that_say_something_else_may_lead(progress: str) -> None:
    """A commit before its outputs is no mistake then."""
    design = ORDERS.model_copy(update={"progress": progress})
    commits = OUTSIDE.model_copy(update={"ahead": True})
    said = {each.code: each for each in found(design, commits=commits)}

    assert "auto-commit" not in said
    assert f'(progress = "{progress}")' in said["commits"].text
