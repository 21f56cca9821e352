"""A client uses the highest version that it knows and is offered."""

import pytest
from kio.schema.index import schema_name_map

from upheld.injectors.proxy.offers import Negotiated, Offer, negotiated, offer_of

FETCH = max(schema_name_map["fetch"])


def test_a_broker_that_is_newer_offers_more_than_the_proxy_can_read() -> None:
    """An API that is not known at all is offered to nobody."""
    assert offer_of(1, FETCH + 1) == ("fetch", Offer(FETCH + 1, FETCH))
    assert offer_of(1, FETCH - 1)[1].passed == FETCH - 1
    assert offer_of(9999, 2) == ("API 9999", Offer(2, -1))


@pytest.mark.parametrize(
    ("asked", "offer", "versions"),
    [
        ([13], Offer(14, 13), (13, 14)),  # the client may know a newer one
        ([12], Offer(14, 13), (12, 12)),  # the client knows no newer one
        ([9, 13], Offer(14, 13), (13, 14)),
        ([13], Offer(13, 13), (13, 13)),
        ([12], Offer(12, 13), (12, 12)),  # the broker is the older one
        ([13], None, (13, 13)),  # the client never asked for the versions
    ],
)
def test_a_client_at_the_proxys_highest_version_might_use_a_newer_one(
    asked: list[int], offer: Offer | None, versions: tuple[int, int]
) -> None:
    """Any other client has its own highest version either way."""
    found = negotiated([("produce", v) for v in asked], {"produce": offer} if offer else {})

    assert (found.through["produce"], found.without["produce"]) == versions


@pytest.mark.parametrize(
    ("asked", "broker", "versions"),
    [
        ([5, 4], 4, (4, 4)),  # the broker itself falls back
        ([5, 4], 5, (4, 5)),
        ([4], 5, (4, 4)),  # clients ask with their highest version first
        ([99, 0], 5, (0, 5)),
    ],
)
def test_the_first_question_shows_what_a_client_knows(
    asked: list[int], broker: int, versions: tuple[int, int]
) -> None:
    """An ApiVersions of a newer version is answered with those that there are."""
    found = negotiated([("api_versions", v) for v in asked], {"api_versions": Offer(broker, 4)})

    assert (found.through["api_versions"], found.without["api_versions"]) == versions


def test_what_the_proxy_does_not_know_is_hidden() -> None:
    """It stands in the history with the version that the broker offers."""
    assert negotiated([], {"API 99": Offer(2, -1)}) == Negotiated({}, {}, {"API 99": 2})
