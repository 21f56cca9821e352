"""Keeps its state in a changelog, whose name has another number in each release.

The mistake is a number that a framework counts up. A release shows it: its state is empty.
"""

import sys
from typing import Any

from upheld.adapter import serve
from upheld.impl.common.topics import make_topic
from upheld.impl.plain import Ledger, OutputRecord, Plain


class Kept(Ledger):
    tables = ("changelog",)

    def upstream(self) -> dict[str, list[OutputRecord]]:
        touched = self.touched
        rows = super().changed()
        self.touched = touched  # the same rows are the outputs
        return {"changelog": rows}


class RenamesItsChangelog(Plain):
    hello = Plain.hello | {"name": "broken/renames_its_changelog", "version": sys.argv[1]}
    programs = Plain.programs | {"ledger": Kept}

    def take_hold(self, start: dict[str, Any]) -> dict[str, Any]:
        topic = f"{start['application_id']}-STATE-STORE-{sys.argv[2]}-changelog"
        make_topic(start["client"] | {"bootstrap.servers": start["bootstrap"]}, topic, 4)
        known = start["topics"] | {"changelog": topic}
        return super().take_hold(start | {"topics": known}) | {"internal_topics": [topic]}


serve(RenamesItsChangelog())
