"""Passes key and value on, and none of the headers.

The mistake is to copy a record field by field. It shows wherever a relay's input carries headers.
"""

from upheld.adapter import serve
from upheld.impl.plain import OutputRecord, Plain, Relay


class Bare(Relay):
    def changed(self) -> list[OutputRecord]:
        return [row._replace(headers=[]) for row in super().changed()]


class DropsHeaders(Plain):
    hello = Plain.hello | {"name": "broken/drops_headers"}
    programs = Plain.programs | {"relay": Bare}


serve(DropsHeaders())
