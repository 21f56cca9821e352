"""JSON of inputs and outputs that is read quickly says the same as read slowly."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from upheld.reading import loaded

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda each: (
        st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3)
    ),
    max_leaves=8,
)


ODD = (
    *(b"", b"NaN", b"[Infinity, -Infinity]", b"1e999", b"-0", b"01", b"1" * 100, b" 1 ", b"1 1"),
    *(b'"\\ud800"', b'"\x01"', b"\xef\xbb\xbf1", '"ä"'.encode("utf-16")),
    *(b'{"a": 1, "a": 2}', b'{"a":}', b"[" * 150 + b"]" * 150),
)


def _damaged() -> Iterator[st.SearchStrategy[bytes]]:
    """Return JSON, JSON that is cut or has a byte too many, and bytes of any kind."""
    sound = VALUES.map(lambda value: json.dumps(value).encode())
    yield sound
    yield st.tuples(sound, st.integers(0, 40)).map(lambda both: both[0][: both[1]])
    yield st.tuples(sound, st.integers(0, 40), st.binary(max_size=2)).map(
        lambda all_three: all_three[0][: all_three[1]] + all_three[2] + all_three[0][all_three[1] :]
    )
    yield st.binary(max_size=20)
    yield st.sampled_from(ODD)


@given(st.one_of(*_damaged()))
def test_json_is_read_as_json_reads_it(data: bytes) -> None:
    """The quick reader gives the same as the slow one.

    It refuses the same text, with the same words; and half of a surrogate pair besides.
    """
    assert _outcome(loaded, data) == _outcome(_slowly, data)


def _slowly(data: bytes) -> object:
    value = json.loads(data)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _outcome(read_json: Any, data: bytes) -> tuple[str, str]:
    try:
        return "gives", repr(read_json(data))
    except ValueError as error:
        return "refuses", repr(error)
