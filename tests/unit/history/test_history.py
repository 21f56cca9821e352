"""A history that is written quickly holds the same as one written slowly."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from histories import Story
from hypothesis import given
from hypothesis import strategies as st

from upheld.errors import UsageProblem
from upheld.history import History
from upheld.history.events import BINARY, EVENT, Record, RecordLine
from upheld.history.reading import read
from upheld.kafka.reader import recorded

DATA = (
    st.none()
    | st.binary(max_size=80)
    | st.text(max_size=40).map(str.encode)
    | st.just(f"{BINARY}text".encode())
)
PLACE: dict[str, Any] = {
    "topic": "topic",
    "partition": 0,
    "offset": 0,
    "timestamp_ms": 0,
    "key": None,
}
FIELDS = st.fixed_dictionaries(
    {
        "topic": st.text(max_size=40),
        "partition": st.integers(0, 1000),
        "offset": st.integers(0, (1 << 63) - 1),
        "timestamp_ms": st.integers(-1, (1 << 63) - 1),
        "key": DATA,
        "value": DATA,
        "headers": st.lists(st.tuples(st.text(max_size=20), DATA), max_size=3).map(tuple),
        "visible": st.booleans(),
        "incarnation": st.integers(0, 3),
        "seen_ms": st.integers(0, 1 << 40),
    }
)


class TestRecords:
    """Records that are made without validation, and written without a serialiser."""

    @given(FIELDS)
    def test_is_written_as_pydantic_writes_it(self, fields: dict[str, Any]) -> None:
        """Byte for byte, whatever stands in it; and it is read back as it was."""
        record = Record(**fields)

        assert record.line() == RecordLine(**fields).model_dump_json()
        assert EVENT.validate_json(record.line()) == record

    def test_a_line_has_the_fields_of_a_record(self) -> None:
        """It has each of them, with the same default."""
        known = {name: field for name, field in RecordLine.model_fields.items() if name != "kind"}

        assert tuple(known) == Record._fields
        assert {n: f.default for n, f in known.items() if not f.is_required()} == (
            Record._field_defaults
        )

    @given(DATA.filter(lambda data: data is not None))
    def test_data_that_a_person_can_read_stays_text(self, data: bytes) -> None:
        """Printable text that does not look like the escape is itself; all else is base64."""
        value = json.loads(Record(**PLACE, value=data).line())["value"]

        try:
            is_text = data.decode().isprintable() and not data.startswith(BINARY.encode())
        except UnicodeDecodeError:
            is_text = False
        assert value == (data.decode() if is_text else BINARY + b64encode(data).decode())

    def test_of_messages(self) -> None:
        """Each message of a topic gives its record, with the wave's time.

        Aborted records are not visible.
        """
        found = recorded(
            [_Message(0, 5), _Message(1, 5)],
            lambda partition, _: 10 + partition,
            {(0, 5)},
            incarnation=2,
        )

        first = Record(
            topic="topic",
            partition=0,
            offset=5,
            timestamp_ms=7,
            key=b"key",
            value=None,
            headers=(("name", b"value"),),
            incarnation=2,
            seen_ms=10,
        )
        assert list(found) == [
            first,
            first._replace(partition=1, visible=False, seen_ms=11),
        ]

    def test_of_a_reader_of_what_is_committed(self) -> None:
        """All that such a reader is given is visible."""
        assert [record.visible for record in recorded([_Message(0, 5)], lambda *_: 0)] == [True]


class _Message:
    """A client's message, as far as it is looked at."""

    def __init__(self, partition: int, offset: int) -> None:
        self._place = partition, offset

    def topic(self) -> str:
        """Return its topic."""
        return "topic"

    def partition(self) -> int:
        """Return its partition."""
        return self._place[0]

    def offset(self) -> int:
        """Return its offset."""
        return self._place[1]

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of its timestamp, and the timestamp."""
        return 1, 7

    def key(self) -> bytes:
        """Return its key."""
        return b"key"

    def value(self) -> None:
        """Return its value."""

    def headers(self) -> list[tuple[str, bytes]]:
        """Return its headers."""
        return [("name", b"value")]


def test_all_at_once_is_one_after_the_other(tmp_path: Path) -> None:
    """Records that are added together stand as if each had been added.

    They do in the history, by kind and in the file.
    """
    story = Story()
    records = [story.entry(ada=1), story.aborted(ada=2), story.spoiled(None)]
    one = History(path=tmp_path / "one")
    all_of_them = History(path=tmp_path / "all")
    for history in (one, all_of_them):
        history.add(story.history.begun)
    for record in records:
        one.add(record)
    all_of_them.add_all(iter(records))
    for history in (one, all_of_them):
        history.close()

    assert one.events == all_of_them.events
    assert list(one.of(Record)) == list(all_of_them.of(Record)) == records
    assert (tmp_path / "one").read_bytes() == (tmp_path / "all").read_bytes()


def test_what_was_recorded_is_written_again_as_it_was(tmp_path: Path) -> None:
    """Reading a history and writing it again gives the same bytes."""
    story = Story()
    story.names("app-entries", "app-balances")
    story.start()
    story.row(
        "ada",
        1,
        1,
        story.entry(ada=1, headers=(("teller", b""), ("digest", b"\xff"), ("none", None))),
    )
    story.kill()
    story.settled(1)
    story.claims("fold")
    path = story.recorded(tmp_path / "h.jsonl")
    again = History(path=tmp_path / "again.jsonl")
    for event in read(path).events:
        again.add(event)
    again.close()

    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()


HOSTILE: dict[str, bytes] = {
    "a deep list": b'{"kind":"mark","at_ms":1,"fault":"x","evidence":{"a":'
    + b"[" * 200_000
    + b"]" * 200_000
    + b"}}",
    "a deep object": b'{"kind":"mark","at_ms":1,"fault":"x","evidence":' + b'{"a":' * 200_000,
    "a number of 6000 digits": b'{"kind":"memory","at_ms":' + b"9" * 6_000 + b"}",
    "a long number in evidence": b'{"kind":"mark","at_ms":1,"fault":"x","evidence":{"a":'
    + b"9" * 6_000
    + b"}}",
    "no number": b'{"kind":"measured","at_ms":NaN,"application":"a","size":1,"unit":"rows"}',
    "a lone surrogate": b'{"kind":"mark","at_ms":1,"fault":"\\ud800","evidence":{}}',
    "an unknown event": b'{"kind":"\\u001b[2J\\nupheld"}',
    "a missing field": b'{"kind":"record","topic":"t"}',
    "a field too many": b'{"kind":"names","at_ms":1,"topics":[],"groups":[],"more":1}',
    "another type": b'{"kind":"names","at_ms":1,"topics":"t","groups":[]}',
    "no base64": b'{"kind":"answer","at_ms":1,"application":"a","name":"a","key":"base64:!",'
    b'"ready":true,"stable":{}}',
    "an endless batch": b'{"kind":"batch","topic":"t","partition":0,"base_offset":0,'
    b'"last_offset":9223372036854775807,"producer_id":1,"producer_epoch":0,"transactional":true}',
    "a NUL": b"\0",
    "nothing": b"",
    "a list": b"[]",
    "no UTF-8": b'{"kind":"\xff"}',
}


@pytest.mark.parametrize("line", HOSTILE)
def test_a_hostile_line_is_refused_in_one_sentence(tmp_path: Path, line: str) -> None:
    """The sentence names the file and the line, whatever stands there."""
    path = tmp_path / "h.jsonl"
    Story().recorded(path)
    first, *others = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, HOSTILE[line], *others]))

    with pytest.raises(UsageProblem) as refused:
        read(path)

    said = str(refused.value)
    assert str(path) in said
    assert "line 2" in said
    assert said.isprintable()
    assert len(said) < 600


def test_a_path_that_is_none_is_refused() -> None:
    """A path with a NUL, or one that is too long, is no traceback."""
    for name in ("a\0b", "a" * 5_000):
        with pytest.raises(UsageProblem, match="cannot be read"):
            read(Path(name))
