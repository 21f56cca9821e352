"""Stores its stages in the order in which an entry passes them, the first one first.

Whoever writes down each stage when it is done makes this mistake. It shows after a crash between
the two: what the first stage knows already it does not say again, and the totals never hear of it.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain
from upheld.impl.plain.programs import Branches, Program


class FirstStageFirst(Branches):
    def stages(self) -> dict[str, Program]:
        return dict(reversed(super().stages().items()))


class StoresTheFirstStageFirst(Plain):
    hello = Plain.hello | {"name": "broken/stores_the_first_stage_first"}
    programs = Plain.programs | {"branches": FirstStageFirst}


serve(StoresTheFirstStageFirst())
