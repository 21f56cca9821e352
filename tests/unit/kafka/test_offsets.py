"""OffsetFetch by hand says what kio says.

Requests agree in every byte, and answers in every field that is read.
"""

from datetime import timedelta

import pytest
from entities import written
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.offset_fetch.v7 import request as offset_request
from kio.schema.offset_fetch.v7 import response as offset_response
from kio.schema.types import GroupId, TopicName
from kio.serial import entity_reader
from kio.static.primitive import i32, i32Timedelta, i64

from upheld.errors import MachineProblem
from upheld.kafka.offsets import Committed, answer, request

NUMBERS = st.integers(0, (1 << 31) - 1).map(i32)
NAMES = st.text(min_size=1, max_size=200)
CODES = st.sampled_from(ErrorCode)


partitions = st.builds(
    offset_response.OffsetFetchResponsePartition,
    partition_index=NUMBERS,
    committed_offset=st.integers(-1, (1 << 63) - 1).map(i64),
    committed_leader_epoch=NUMBERS,
    metadata=st.none() | st.text(max_size=200),
    error_code=CODES,
)
answers = st.builds(
    offset_response.OffsetFetchResponse,
    throttle_time=st.just(i32Timedelta.parse(timedelta(0))),
    topics=st.lists(
        st.builds(
            offset_response.OffsetFetchResponseTopic,
            name=NAMES.map(TopicName),
            partitions=st.lists(partitions, max_size=4).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
    error_code=CODES,
)


def sent(whole: offset_response.OffsetFetchResponse) -> bytes:
    """Return an answer as it arrives: behind a correlation id, and no tagged fields."""
    return b"\0\0\0\7\0" + written(whole)


@given(answers)
def test_an_answer(whole: offset_response.OffsetFetchResponse) -> None:
    """Errors and offsets are those that kio reads from the same bytes."""
    read, _ = entity_reader(offset_response.OffsetFetchResponse)(written(whole), 0)

    places = [(topic.name, p) for topic in read.topics for p in topic.partitions]
    assert answer(sent(whole)) == Committed(
        read.error_code,
        {(name, p.partition_index): p.committed_offset for name, p in places},
        frozenset(p.error_code for _, p in places if p.error_code),
    )


@given(answers, st.data())
def test_an_answer_that_is_cut(
    whole: offset_response.OffsetFetchResponse, data: st.DataObject
) -> None:
    """Bytes that end too soon are the machine's problem, in one sentence."""
    cut = sent(whole)
    cut = cut[: data.draw(st.integers(0, len(cut) - 1))]

    with pytest.raises(
        MachineProblem,
        match=r"^the broker answered OffsetFetch with bytes that are no such answer$",
    ):
        answer(cut)


def test_tagged_fields_are_passed_over() -> None:
    """A later broker may say more than this version has names for."""
    plain = offset_response.OffsetFetchResponse(
        throttle_time=i32Timedelta.parse(timedelta(0)), topics=()
    )
    body = written(plain)

    assert answer(b"\0\0\0\7" + b"\1\5\3abc" + body[:-1] + b"\2\0\0\1\2xy") == Committed(
        0, {}, frozenset()
    )


@given(
    NUMBERS,
    NAMES,
    st.dictionaries(NAMES.map(TopicName), st.integers(0, 200), max_size=3),
    st.booleans(),
)
def test_a_request(
    correlation_id: i32, group: str, topics: dict[TopicName, int], stable: bool
) -> None:
    """The bytes are those that kio writes."""
    asked = offset_request.OffsetFetchRequest(
        group_id=GroupId(group),
        topics=tuple(
            offset_request.OffsetFetchRequestTopic(
                name=name, partition_indexes=tuple(map(i32, range(count)))
            )
            for name, count in topics.items()
        ),
        require_stable=stable,
    )
    header = asked.__header_schema__(
        request_api_key=asked.__api_key__,
        request_api_version=asked.__version__,
        correlation_id=correlation_id,
        client_id="upheld",
    )

    assert request(correlation_id, "upheld", group, topics, stable=stable) == written(
        header
    ) + written(asked)
