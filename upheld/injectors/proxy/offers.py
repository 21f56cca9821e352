"""Versions of APIs: offered by brokers, passed on by the proxy, used by clients.

A client picks the highest version that it knows itself and that is offered to it. The proxy offers
no version that it cannot read. So a client may use an older version through the proxy than without
it. Which one it would use without it is not seen: the broker's highest at most.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kio.schema.index import api_key_map, schema_name_map

API_VERSIONS: Final = "api_versions"
UNKNOWN: Final = -1  # the proxy's highest version of an API that it does not know


class Offer(NamedTuple):
    """The highest versions of an API: the broker's, and the one that the proxy reads."""

    broker: int
    proxy: int

    @property
    def passed(self) -> int:
        """The highest version that a client behind the proxy is offered."""
        return min(self)


class Negotiated(NamedTuple):
    """The versions that a client used, and those that it might use without the proxy.

    Attributes:
        through: The highest version of each API that it used through the proxy.
        without: The same, or the broker's highest if the client used the proxy's highest.
        hidden: The APIs of the broker that the proxy does not know, with their highest versions.
    """

    through: dict[str, int]
    without: dict[str, int]
    hidden: dict[str, int]


def offer_of(api_key: int, highest: int) -> tuple[str, Offer]:
    """Return the name of an API that a broker offers, and what becomes of the offer."""
    if api_key not in api_key_map:
        return f"API {api_key}", Offer(highest, UNKNOWN)
    name = api_key_map[api_key]
    return name, Offer(highest, max(schema_name_map[name]))


def negotiated(asked: Iterable[tuple[str, int]], offers: Mapping[str, Offer]) -> Negotiated:
    """Return the versions that a client used.

    Args:
        asked: The API and the version of each of its requests.
        offers: What its broker offers, by the names of the APIs.
    """
    versions = defaultdict[str, set[int]](set)
    for api, version in asked:
        versions[api].add(version)
    through = dict[str, int]()
    without = dict[str, int]()
    for api, used in sorted(versions.items()):
        offer = offers.get(api) or Offer(max(used), max(used))
        # A newer ApiVersions is answered with the range of known ones, and asked for again.
        through[api] = max({v for v in used if v <= offer.passed} or used)
        without[api] = through[api]
        if api == API_VERSIONS:
            without[api] = min(max(used), max(offer.broker, through[api]))
        elif through[api] == offer.passed:
            without[api] = offer.broker
    hidden = {api: offer.broker for api, offer in offers.items() if offer.proxy == UNKNOWN}
    return Negotiated(through, without, hidden)
