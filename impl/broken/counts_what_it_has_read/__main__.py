"""Is behind by what it has not read, whatever it has committed.

Whoever exports the client's own records-lag makes this mistake. It shows between two commits: what would be read again after
a crash counts as done.
"""

from typing import Any

from streamgate.adapter import serve
from streamgate.impl.plain import Plain


class CountsWhatItHasRead(Plain):
    hello = Plain.hello | {"name": "broken/counts_what_it_has_read"}

    def lag(self) -> dict[str, Any]:
        read = sum(max(0, place.offset) for place in self.consumer.position(self.committed))
        ends = sum(self.consumer.get_watermark_offsets(place, 4.0)[1] for place in self.committed)
        return {"type": "lagging", "offsets": ends - read}


serve(CountsWhatItHasRead())
