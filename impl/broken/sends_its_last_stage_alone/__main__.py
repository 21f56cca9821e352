"""Sends what its last stage says, and keeps what the stages before it know to itself.

Whoever takes the stages of one application for an inner affair makes this mistake: it shows at once
to who reads the accounts, and never in the totals.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain
from upheld.impl.plain.programs import Branches, Row


class LastStageAlone(Branches):
    def upstream(self) -> dict[str, list[Row]]:
        self.balances.changed()
        return {}


class SendsItsLastStageAlone(Plain):
    hello = Plain.hello | {"name": "broken/sends_its_last_stage_alone"}
    programs = Plain.programs | {"branches": LastStageAlone}


serve(SendsItsLastStageAlone())
