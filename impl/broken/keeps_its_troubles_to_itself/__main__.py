"""Stops at a file that it cannot read back, and does not say which.

The mistake is to think of the log and not of its reader at night. It shows when a file is torn: the
operator cannot tell which one to mend.
"""

from typing import Any

from upheld.adapter import Failed, serve
from upheld.impl.plain import Plain


class KeepsItsTroublesToItself(Plain):
    hello = Plain.hello | {"name": "broken/keeps_its_troubles_to_itself"}

    def kept_as(self, name: str) -> dict[str, Any]:
        try:
            return super().kept_as(name)
        except Failed:
            raise Failed("storage", "the state cannot be loaded") from None


serve(KeepsItsTroublesToItself())
