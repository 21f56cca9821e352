"""Whose a name on the broker is."""

import re
from collections.abc import Iterable
from typing import Final

_HEX: Final = "0-9a-f"
_UUID: Final = re.compile(
    rf"(?<![{_HEX}])[{_HEX}]{{8}}(-?)[{_HEX}]{{4}}\1[{_HEX}]{{4}}"
    rf"\1[{_HEX}]{{4}}\1[{_HEX}]{{12}}(?![{_HEX}])",
    re.IGNORECASE,
)


def has_id_of(name: str, application_ids: Iterable[str]) -> bool:
    """Return whether a name has one of these application ids anywhere in it.

    An application id is random, so that no name has it by chance.
    """
    return any(each in name for each in application_ids)


def is_drawn(name: str) -> bool:
    """Return whether a name has a UUID in it, so that nobody else has the same name."""
    return bool(_UUID.search(name))
