"""Stores its stages in the order in which an entry passes them.

The mistake is to write down each stage when it is done. It shows after a crash between the two. The
first stage does not say again what it knows already, and the totals never hear of it.
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
