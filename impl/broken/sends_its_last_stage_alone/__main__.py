"""Sends the rows of its last stage, and none of the stages before it.

The mistake is to take the stages of an application for its inner affair. It shows at once to
readers of the accounts, and never in the totals.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain
from upheld.impl.plain.programs import Branches, OutputRecord


class LastStageAlone(Branches):
    def upstream(self) -> dict[str, list[OutputRecord]]:
        self.balances.changed()
        return {}


class SendsItsLastStageAlone(Plain):
    hello = Plain.hello | {"name": "broken/sends_its_last_stage_alone"}
    programs = Plain.programs | {"branches": LastStageAlone}


serve(SendsItsLastStageAlone())
