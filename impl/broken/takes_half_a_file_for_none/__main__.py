"""Takes a file that it cannot read for one that is not there, and goes on.

The mistake is to want a start never to fail. It shows in what waited in the file: it is lost
without a word, though the offsets say that it was read.
"""

from contextlib import suppress
from typing import Any

from upheld.adapter import Failed, serve
from upheld.impl.plain import Plain


class TakesHalfAFileForNone(Plain):
    hello = Plain.hello | {"name": "broken/takes_half_a_file_for_none"}

    def kept_as(self, name: str) -> dict[str, Any]:
        with suppress(Failed):
            return super().kept_as(name)
        return {}


serve(TakesHalfAFileForNone())
