"""Measures how long events have waited by the time of day.

Whoever takes the machine's time for a clock makes this mistake. It shows where somebody sets it.
"""

import time

from upheld.adapter import serve
from upheld.impl.plain import Batcher, Plain


class ByTheDay(Batcher):
    now = staticmethod(time.time)


class FollowsTheWallClock(Plain):
    hello = Plain.hello | {"name": "broken/follows_the_wall_clock", "programs": ["batcher"]}
    programs = {"batcher": ByTheDay}  # noqa: RUF012


serve(FollowsTheWallClock())
