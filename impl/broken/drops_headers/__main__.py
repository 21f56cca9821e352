"""Passes key and value on, and none of the headers.

Whoever copies a record field by field makes this mistake. It shows wherever a relay's input carries
headers.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain, Relay, Row


class Bare(Relay):
    def changed(self) -> list[Row]:
        return [(key, value, [], timestamp_ms) for key, value, _, timestamp_ms in super().changed()]


class DropsHeaders(Plain):
    hello = Plain.hello | {"name": "broken/drops_headers"}
    programs = Plain.programs | {"relay": Bare}


serve(DropsHeaders())
