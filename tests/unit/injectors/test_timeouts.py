"""The proxy shortens timeouts, and changes nothing else of a request."""

from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.index import schema_name_map
from kio.static.primitive import i16, i32, i32Timedelta

from upheld.injectors.proxy.frames import Request, encode, parse
from upheld.injectors.proxy.timeouts import Timeout, Timeouts

JOIN_GROUP = 11
INIT_PRODUCER_ID = 22
DEPLOYED_MS = 45_000
MOST = {Timeout.SESSION: 10_000, Timeout.TRANSACTION: 3_000}
FIELDS = {JOIN_GROUP: "session_timeout", INIT_PRODUCER_ID: "transaction_timeout"}
SAID: dict[str, Any] = {
    "session_timeout": i32Timedelta.parse(timedelta(milliseconds=DEPLOYED_MS)),
    "transaction_timeout": i32Timedelta.parse(timedelta(milliseconds=DEPLOYED_MS)),
    "rebalance_timeout": i32Timedelta.parse(timedelta(minutes=5)),
    "group_id": "fees",
    "member_id": "",
    "protocol_type": "consumer",
    "protocols": (),
    "transactional_id": "fees-a",
}
VERSIONS = [
    (api_key, version)
    for api_key, name in ((JOIN_GROUP, "join_group"), (INIT_PRODUCER_ID, "init_producer_id"))
    for version in schema_name_map[name]
]


def asking(api_key: int, version: int, **said: Any) -> Request:
    """Return a request that asks for the timeout of a client as it is deployed."""
    schema: Any = load_request_schema(api_key, version)
    named = {each.name for each in fields(schema)}
    header = schema.__header_schema__(
        request_api_key=i16(api_key),
        request_api_version=i16(version),
        correlation_id=i32(7),
        client_id="me",
    )
    known = {name: value for name, value in (SAID | said).items() if name in named}
    return parse(encode(header, schema(**known)))


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_a_timeout_is_shortened_and_nothing_else(api_key: int, version: int) -> None:
    """Of every version, header and message stay, but for the one field."""
    request = asking(api_key, version)
    timeouts = Timeouts(dict(MOST))

    passed = timeouts.passed(request)

    name = FIELDS[api_key]
    timeout, most_ms = {JOIN_GROUP: (Timeout.SESSION, 10_000)}.get(
        api_key, (Timeout.TRANSACTION, 3_000)
    )
    shorter = i32Timedelta.parse(timedelta(milliseconds=most_ms))
    assert passed.frame == asking(api_key, version, **{name: shorter}).frame
    assert (timeouts.asked, timeouts.given) == ({timeout: DEPLOYED_MS}, {timeout: most_ms})


@pytest.mark.parametrize("most", [{}, {Timeout.SESSION: 60_000, Timeout.TRANSACTION: 60_000}])
@pytest.mark.parametrize("api_key", [JOIN_GROUP, INIT_PRODUCER_ID])
def test_no_timeout_is_lengthened(api_key: int, most: dict[Timeout, int]) -> None:
    """A timeout that is short enough passes byte by byte, and is noted."""
    request = asking(api_key, 3)
    timeouts = Timeouts(most)

    assert timeouts.passed(request).frame == request.frame
    assert [*timeouts.asked.values(), *timeouts.given.values()] == [DEPLOYED_MS] * 2


def test_a_producer_without_transactions_has_no_timeout() -> None:
    """An idempotent producer asks for its id alone."""
    request = asking(INIT_PRODUCER_ID, 3, transactional_id=None)
    timeouts = Timeouts(dict(MOST))

    assert timeouts.passed(request).frame == request.frame
    assert timeouts.asked == {}
