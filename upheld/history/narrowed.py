"""Name the APIs whose versions the proxy narrowed for the clients behind it."""

from upheld.history import History
from upheld.history.events import Negotiated


def narrowed(history: History) -> list[str]:
    """Return each API of which the proxy offered less than the broker, in words.

    The list is empty if the proxy offered all that the clients could use.
    """
    said = dict[str, None]()
    for event in history.of(Negotiated):
        for api, version in event.through.items():
            if event.without[api] > version:
                said[f"{api} v{version} instead of up to v{event.without[api]}"] = None
        for api, version in event.hidden.items():
            said[f"no {api} instead of up to v{version}"] = None
    return list(said)
