"""Takes its old place in the group back, and the partitions that it had there.

The mistake is to take a static member's place for its assignment (KAFKA-13435). It shows where
partitions were added while the instance was down, and it is back within its session.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain


class ReturnsAsItWas(Plain):
    hello = Plain.hello | {"name": "broken/returns_as_it_was"}

    def member(self) -> str:
        return str(self.start["instance"])


serve(ReturnsAsItWas())
