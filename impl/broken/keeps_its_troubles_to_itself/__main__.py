"""Stops where it cannot read a file back, and says no more than that something is wrong.

Whoever thinks of the log and not of who reads it at night makes this mistake. It shows when a file
is torn: nobody can tell which one to mend.
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
