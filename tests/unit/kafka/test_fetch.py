"""Fetch by hand says what kio says.

Requests agree in every byte, and answers in every field that is read.
"""

from datetime import timedelta

import pytest
from entities import written
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v11 import request as fetch_request
from kio.schema.fetch.v11 import response as fetch_response
from kio.schema.types import BrokerId, ProducerId, TopicName
from kio.serial import entity_reader
from kio.static.primitive import i8, i32, i32Timedelta, i64

from upheld.errors import MachineProblem
from upheld.kafka.fetch import Fetched, answer, request

OFFSETS = st.integers(-1, (1 << 63) - 1).map(i64)
NUMBERS = st.integers(0, (1 << 31) - 1).map(i32)
TOPICS = st.text(min_size=1, max_size=40).map(TopicName)
NOTHING = i32Timedelta.parse(timedelta(0))


partitions = st.builds(
    fetch_response.PartitionData,
    partition_index=NUMBERS,
    error_code=st.sampled_from(ErrorCode),
    high_watermark=OFFSETS,
    last_stable_offset=OFFSETS,
    log_start_offset=OFFSETS,
    aborted_transactions=st.none()
    | st.lists(
        st.builds(
            fetch_response.AbortedTransaction,
            producer_id=OFFSETS.map(ProducerId),
            first_offset=OFFSETS,
        )
    ).map(tuple),
    preferred_read_replica=NUMBERS.map(BrokerId),
    records=st.none() | st.binary(max_size=200),
)
answers = st.builds(
    fetch_response.FetchResponse,
    throttle_time=st.just(NOTHING),
    error_code=st.just(ErrorCode.none),
    session_id=NUMBERS,
    responses=st.lists(
        st.builds(
            fetch_response.FetchableTopicResponse,
            topic=TOPICS,
            partitions=st.lists(partitions).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
)


@given(answers)
def test_an_answer(written_answer: fetch_response.FetchResponse) -> None:
    """Every partition's error, ends and records are those that kio reads."""
    data = written(written_answer)
    read, _ = entity_reader(fetch_response.FetchResponse)(data, 0)

    assert answer(data) == {
        p.partition_index: Fetched(
            p.partition_index,
            p.error_code,
            p.high_watermark,
            p.last_stable_offset,
            p.records or b"",
        )
        for topic in read.responses
        for p in topic.partitions
    }


@given(answers.filter(lambda each: any(topic.partitions for topic in each.responses)), st.data())
def test_an_answer_that_is_cut(whole: fetch_response.FetchResponse, data: st.DataObject) -> None:
    """Bytes that end too soon are the machine's problem, in one sentence."""
    cut = written(whole)
    cut = cut[: data.draw(st.integers(0, len(cut) - 1))]

    with pytest.raises(
        MachineProblem, match=r"^the broker answered Fetch with bytes that are no such answer$"
    ):
        answer(cut)


@given(NUMBERS, TOPICS, st.dictionaries(NUMBERS, OFFSETS, max_size=5), NUMBERS)
def test_a_request(
    correlation_id: i32, topic: TopicName, offsets: dict[i32, i64], max_bytes: i32
) -> None:
    """The bytes are those that kio writes."""
    asked = fetch_request.FetchRequest(
        max_wait=NOTHING,
        min_bytes=i32(0),
        isolation_level=i8(0),
        topics=(
            fetch_request.FetchTopic(
                topic=topic,
                partitions=tuple(
                    fetch_request.FetchPartition(
                        partition=p, fetch_offset=offset, partition_max_bytes=max_bytes
                    )
                    for p, offset in offsets.items()
                ),
            ),
        ),
        forgotten_topics_data=(),
    )
    header = asked.__header_schema__(
        request_api_key=asked.__api_key__,
        request_api_version=asked.__version__,
        correlation_id=correlation_id,
        client_id="upheld",
    )

    assert request(correlation_id, "upheld", topic, offsets, max_bytes) == written(
        header
    ) + written(asked)
