"""The shipped schemas are valid alone, and refuse what is damaged."""

import json
import lzma
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import conversation
import messages
import pytest
import reports
import tomlkit
from corpora import FOLDER, SUFFIX
from documents import fences
from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.validators import validator_for
from pydantic import TypeAdapter, ValidationError

from upheld.errors import UsageProblem
from upheld.history import events
from upheld.history.events import EVENT
from upheld.protocol.manifest import load
from upheld.protocol.messages import REPLIES_TO, REPLY, REQUEST, Message
from upheld.report import RowResult, Summary, Writer
from upheld.spec.schemas import ENVELOPE, SCHEMAS, text_of
from upheld.verdicts import Anomaly, Verdict

ROOT = Path(__file__).parents[3]
NAMES = [name for name in SCHEMAS if name != ENVELOPE]
DESIGNS = sorted(
    path
    for folder in ("impl", "examples", "tests/twins", "upheld/scaffold")
    for path in (ROOT / folder).rglob("design.toml")
)
DESIGN = {
    "name": "mine",
    "version": "1",
    "command": ["{python}", "mine.py"],
    "programs": ["relay"],
    "modes": ["exactly_once"],
}
SIN = {"scenarios": ["G22.dies-after-a-commit"], "anomaly": "lost"}
TWIN = {
    "rows": ["G1.x"],
    "was": "stuck",
    "line": {"right": "self.commit()", "wrong": "", "anomaly": "lost"},
}
START = {
    "type": "start",
    "program": "relay",
    "application_id": "mine",
    "instance": "a",
    "bootstrap": "127.0.0.1:9092",
    "topics": {"input": "mine-input", "output": "mine-output"},
    "session_timeout_ms": 6000,
    "transaction_timeout_ms": 3000,
    "state_dir": "/state",
    "durable_dir": "/durable",
}
HELLO = {
    "type": "hello",
    "protocol": 2,
    "name": "mine",
    "version": "1",
    "language": "go",
    "programs": ["relay"],
    "modes": ["exactly_once"],
}
LINE: TypeAdapter[Any] = TypeAdapter(RowResult | Summary)
OF_AN_INSTANCE: dict[str, Any] = {"at_ms": 7, "application": "it", "name": "a"}
# The kinds that no recorded history of the tests has.
OTHERS = [
    events.Notice(**OF_AN_INSTANCE, code="offset-reset", topic="t", partition=0, begin=3, end=9),
    events.Connection(**OF_AN_INSTANCE, client="c", asked={}, changed=[(1, "end_txn", "held")]),
    events.Negotiated(**OF_AN_INSTANCE, through={"fetch": 12}, without={"fetch": 17}),
    events.Lag(**OF_AN_INSTANCE, offsets=3, committed={"t-0": 1}, high_watermark={"t-0": 4}),
    events.Measured(at_ms=7, application="it", size=3, unit="rows"),
    events.Memory(at_ms=7, application="it", size_bytes=3),
    events.Fed(at_ms=7, application="it", records={"t-0": 4}),
    events.Ends(at_ms=7, application="it", reason="r", last_stable={}, high_watermark={"t-0": 4}),
    events.Told(at_ms=7, application="it", lines=(("k", None),)),
    events.Answered(at_ms=7, application="it", inputs="d", outputs="t", topics=("t", "u")),
    events.Kept(
        at_ms=7, application="it", topic="t", partitions=1, records=2, size_bytes=3, repeated=0
    ),
    events.Stored(at_ms=7, application="it", rows=(("s", "k", "v"),), writes=((7, "s", "k"),)),
]


@cache
def schema(name: str) -> dict[str, Any]:
    """Return a shipped schema."""
    found: dict[str, Any] = json.loads(text_of(name))
    return found


@cache
def validator(name: str, part: str = "") -> Any:
    """Return the validator of a shipped schema, or of one of its definitions."""
    whole = schema(name)
    asked = whole if not part else whole | {"anyOf": [{"$ref": f"#/$defs/{part}"}]}
    return validator_for(whole)(asked)


def accepted(name: str, said: object, part: str = "") -> bool:
    """Return whether a schema takes something."""
    return bool(validator(name, part).is_valid(said))


def parts_of(part: object) -> Iterator[dict[str, Any]]:
    """Go through the tables inside of a schema."""
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part:
        if isinstance(inner, dict | list):
            yield from parts_of(inner)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_alone(name: str) -> None:
    """It obeys its dialect, has an id and a title, and refers to nothing outside."""
    whole = schema(name)
    dialect = Draft7Validator if name == "design" else Draft202012Validator
    dialect.check_schema(whole)

    assert whole["$schema"] == dialect.META_SCHEMA["$id"]
    assert whole["$id"].startswith("urn:upheld:")
    assert whole["title"]
    assert whole["description"]
    references = {str(each["$ref"]) for each in parts_of(whole) if "$ref" in each}
    for reference in references:
        _, kind, definition = reference.split("/")
        assert definition in whole[kind], reference


def test_every_schema_has_an_id_of_its_own() -> None:
    """A validator that knows all of them tells them apart."""
    ids = {schema(name)["$id"] for name in NAMES}

    assert len(ids) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_everything_is_described(name: str) -> None:
    """An editor shows a sentence for each definition and each field."""
    whole = schema(name)
    definitions = whole.get("$defs", whole.get("definitions", {}))
    silent = [each for each, part in definitions.items() if "description" not in part]
    fields = [
        (name, field)
        for part in parts_of(whole)
        if isinstance(part.get("properties"), dict) and part.get("type") == "object"
        for field, said in part["properties"].items()
        if not said.get("description") and "$ref" not in said
    ]

    assert silent == []
    assert fields == []
    assert [
        each for each, part in definitions.items() if Message.__doc__ == part["description"]
    ] == []


def test_the_protocol_has_every_message() -> None:
    """Each request lists the replies that it may have."""
    whole = schema("protocol")
    requests = {request.__name__ for request in REPLIES_TO}
    replies = {reply.__name__ for replies in REPLIES_TO.values() for reply in replies}

    assert set(whole["$defs"]) == requests | replies | {"Failed", "Notice", "Request", "Reply"}
    assert whole["x-replies-to"]["hello"] == ["hello", "failed"]
    assert len(whole["x-replies-to"]) == len(requests)
    assert whole["x-unasked"] == ["failed", "notice"]


def test_version_1_has_what_version_2_has_not_added() -> None:
    """It has no notice, fewer kinds and fields of failed, and no group protocol."""
    whole = schema("protocol-1")
    failed = whole["$defs"]["Failed"]["properties"]

    assert set(schema("protocol")["$defs"]) - set(whole["$defs"]) == {"Notice"}
    assert whole["x-unasked"] == ["failed"]
    assert set(failed) == {"type", "kind", "message", "again"}
    assert accepted("protocol-1", HELLO | {"protocol": 1}, "Reply")
    assert not accepted("protocol-1", HELLO, "Reply")
    for said in (
        {"type": "notice", "kind": "recovered"},
        {"type": "failed", "kind": "refused", "message": "no", "output": "t"},
        {"type": "failed", "kind": "poison", "message": "no", "topic": "t"},
    ):
        assert accepted("protocol", said, "Reply")
        assert not accepted("protocol-1", said, "Reply")


def test_a_conversation_obeys_the_schema() -> None:
    """Each line that was recorded, and each of the page for adapters, is a message."""
    page = (ROOT / "docs" / "adapter.md").read_text(encoding="utf-8")
    (talk,) = (each for each in fences(page) if each.note == "messages")
    written = [(line.startswith("> "), json.loads(line[2:])) for line in talk.text.splitlines()]
    recorded = [(said.by == conversation.HARNESS, said.says) for said in messages.spoken()]
    assert recorded
    for is_request, message in written + recorded:
        assert accepted("protocol", message, "Request" if is_request else "Reply"), message
        assert accepted("protocol", message), message


@pytest.mark.parametrize(
    "said",
    [
        {name: value for name, value in HELLO.items() if name != "type"},
        HELLO | {"modes": ["sometimes"]},
        HELLO | {"nmae": "mine"},
        {"type": "value"},
        {"type": "measured", "size": -1, "unit": "rows"},
        {"type": "measured", "size": 1, "unit": "pages"},
        {"type": "failed", "kind": "denied", "message": "no"},
        {"type": "failed", "kind": "denied", "message": "no", "right": ""},
        {"type": "failed", "kind": "refused", "message": "no", "output": None},
        {"type": "failed", "kind": "tired", "message": "no"},
        {"type": "notice", "kind": "offset-reset", "topic": "t", "partition": 0, "to": 1},
        {"type": "notice", "kind": "recovered", "begin": 1},
        START,
    ],
)
def test_a_damaged_reply_is_refused(said: dict[str, object]) -> None:
    """The schema refuses it, and the harness too."""
    assert not accepted("protocol", said, "Reply")
    with pytest.raises(ValidationError):
        REPLY.validate_python(said)


@pytest.mark.parametrize(
    "said",
    [
        START | {"mode": "sometimes"},
        START | {"offset_reset": "latest"},
        START | {"topics": ["mine-input"]},
        {name: value for name, value in START.items() if name != "bootstrap"},
        {"type": "query", "table": "t"},
        {"type": "go"},
    ],
)
def test_a_damaged_request_is_refused(said: dict[str, object]) -> None:
    """An adapter that checks its input refuses what the harness would not send."""
    assert accepted("protocol", START, "Request")
    assert not accepted("protocol", said, "Request")
    with pytest.raises(ValidationError):
        REQUEST.validate_python(said)


@pytest.mark.parametrize("path", DESIGNS, ids=lambda path: path.parent.name)
def test_a_design_that_ships_obeys_the_schema(path: Path) -> None:
    """Wrong designs, twins, examples and the starter are written as an editor expects."""
    errors = [
        each.message for each in validator("design").iter_errors(tomllib.loads(path.read_text()))
    ]

    assert errors == []


def loads(folder: Path, design: dict[str, Any]) -> bool:
    """Return whether a design can be read from its file."""
    (folder / "design.toml").write_text(tomlkit.dumps(design))
    (folder / "mine.py").touch()
    (folder / "known.txt").touch()
    try:
        load(str(folder))
    except UsageProblem:
        return False
    return True


@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        ({}, True),
        ({"extends": "plain"}, True),
        ({"programs": ...}, False),
        ({"programs": ..., "modes": ..., "extends": "plain"}, True),
        ({"command": ..., "extends": "plain"}, False),
        ({"name": "größe-1.0/a_b"}, True),
        ({"name": "a b"}, False),
        ({"name": "../a"}, False),
        ({"name": "a//b"}, False),
        ({"name": "x" * 101}, False),
        ({"version": "1\u0007"}, False),
        ({"command": []}, False),
        ({"command": ["{python}", "a\u0000b"]}, False),
        ({"environment": {"A": "1"}}, True),
        ({"environment": {"A": 1}}, False),
        ({"modes": ["exactly_once", "exactly_once"]}, False),
        ({"modes": ["sometimes"]}, False),
        ({"capabilities": ["query", "lag"]}, True),
        ({"capabilities": ["querry"]}, False),
        ({"cannot": ["name-topics"]}, True),
        ({"cannot": ["name-topic"]}, False),
        ({"atomic": "row"}, False),
        ({"progress": "none", "emits": "every-state", "local_state": False}, True),
        ({"emits": "some-states"}, False),
        ({"bytes_beside_table": 0.1}, True),
        ({"bytes_beside_table": -0.1}, False),
        ({"known_failures": "known.txt"}, True),
        ({"known_failures": ["G1"]}, False),
        ({"folder": "there"}, False),
        ({"nmae": "mine"}, False),
        ({"sin": SIN}, True),
        ({"mutant": SIN | {"core": ["G1.x"], "control": "G2.y"}}, True),
        ({"sin": SIN | {"scenarios": []}}, False),
        ({"sin": {"scenarios": ["G1.x"]}}, False),
        ({"sin": SIN, "mutant": SIN}, False),
        ({"twin": TWIN}, True),
        ({"twin": TWIN | {"verdict": "lost"}}, False),
        ({"twin": TWIN | {"line": {"right": ""}}}, False),
    ],
)
def test_schema_and_harness_agree_on_a_design(
    tmp_path: Path, change: dict[str, Any], is_right: bool
) -> None:
    """An editor underlines what the harness would refuse, and nothing else."""
    design = {name: value for name, value in (DESIGN | change).items() if value is not ...}

    assert loads(tmp_path, design) is is_right
    assert accepted("design", design) is is_right


def test_an_unknown_program_is_underlined() -> None:
    """A run refuses it too, once it has the catalogue."""
    assert not accepted("design", DESIGN | {"programs": ["rely"]})


@pytest.fixture
def report(tmp_path: Path) -> list[dict[str, Any]]:
    """Return the lines of a report as a run writes it."""
    row: dict[str, Any] = {"design": "mine", "id": "G1.x[relay-exactly_once]", "guarantee": "G1"}
    writer = Writer(tmp_path)
    writer.write(RowResult(**row, name="n", verdict=Verdict.UPHELD, seconds=1.5))
    anomalies = [Anomaly(name="lost", text="it is gone", key="k", source="t-0@7")]
    writer.write(
        RowResult(
            **row,
            name="n",
            verdict=Verdict.VIOLATED,
            anomalies=anomalies,
            totals={"lost": 1},
            marks=[{"at_ms": 3, "fault": "after a commit"}],
            cost={"harness_cpu_s": 0.5, "design_cpu_s": 1},
            seconds=2,
        )
    )
    writer.write(reports.summary())
    writer.close()
    return [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]


def test_a_report_obeys_the_schema(report: list[dict[str, Any]]) -> None:
    """Its rows and its summary do."""
    for line in report:
        assert accepted("report", line), line


def test_the_schema_of_reports_takes_former_formats() -> None:
    """A field that they did not have has a default."""
    for number in (3, 4):
        text = (ROOT / f"tests/data/reports/format-{number}.jsonl").read_text()
        for line in text.splitlines():
            assert accepted("report", json.loads(line)), line


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "green"},
        {"seconds": "long"},
        {"anomalies": [{"name": "lost"}]},
        {"kind": "line"},
        {"code": "because"},
        {"cost": {"harness_cpu_s": 1}},
        {"costs": 1},
    ],
)
def test_a_damaged_row_is_refused(report: list[dict[str, Any]], change: dict[str, Any]) -> None:
    """The schema refuses it, and upheld too."""
    damaged = report[0] | change

    assert not accepted("report", damaged)
    with pytest.raises(ValidationError):
        LINE.validate_python(damaged)


def test_a_damaged_summary_is_refused(report: list[dict[str, Any]]) -> None:
    """A summary of a newer format, or without an exit code, is none of this version's."""
    summary = report[-1]

    assert not accepted("report", summary | {"format": summary["format"] + 1})
    assert not accepted("report", {key: summary[key] for key in summary if key != "exit_code"})


@cache
def events_of_histories() -> dict[str, list[dict[str, Any]]]:
    """Return the first event of each kind of each recorded history, by kind."""
    found = defaultdict[str, list[dict[str, Any]]](list)
    for path in sorted(FOLDER.glob(f"*{SUFFIX}")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            own = {event["kind"]: event for event in reversed([json.loads(line) for line in lines])}
        for kind, event in own.items():
            found[kind].append(event)
    for each in OTHERS:
        event = json.loads(each.line())
        found[event["kind"]].append(event)
    return found


def test_recorded_histories_obey_the_schema() -> None:
    """Each kind of event that there is stands in one of them, or beside them."""
    kinds = {str(each.model_fields["kind"].default) for each in events.Event.__subclasses__()}

    assert set(events_of_histories()) == kinds
    for kind, found in events_of_histories().items():
        for event in found:
            assert accepted("history", event), (kind, event)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("begun", {"atomic": "row"}),
        ("begun", {"seed": ...}),
        ("record", {"offset": "7"}),
        ("record", {"headers": [["id"]]}),
        ("record", {"kind": "records"}),
        ("record", {"valeu": "1"}),
        ("instance", {"event": "asleep"}),
        ("claim", {"check": None}),
        ("ended", {"anomalies": [{"name": "lost"}]}),
        ("ended", {"digest": {"lines": 1}}),
    ],
)
def test_a_damaged_event_is_refused(kind: str, change: dict[str, Any]) -> None:
    """The schema refuses it, and `upheld judge` too."""
    event = events_of_histories()[kind][0]
    damaged = {name: value for name, value in (event | change).items() if value is not ...}

    assert accepted("history", event)
    assert not accepted("history", damaged)
    if change != {"offset": "7"}:  # the harness reads a number in quotes
        with pytest.raises(ValidationError):
            EVENT.validate_python(damaged)
