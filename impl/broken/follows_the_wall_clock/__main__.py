"""Measures how long events have waited by the time of day.

The mistake is to take the machine's time for a clock. It shows where that time is set.
"""

import time

from upheld.adapter import serve
from upheld.impl.plain import Batcher, Plain


class ByTheDay(Batcher):
    now = staticmethod(time.time)


class FollowsTheWallClock(Plain):
    hello = Plain.hello | {"name": "broken/follows_the_wall_clock", "programs": ["batcher"]}
    programs = Plain.programs | {"batcher": ByTheDay}


serve(FollowsTheWallClock())
