"""Keeps what waits of all its partitions in one file, which every commit names.

The mistake is to take an instance for the application. It shows where another instance takes some
of the partitions over: both load the file, and send what waits in it.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Batcher, Place, Plain

NOWHERE = Place("", 0)


class InOneFile(Batcher):
    def load(self, place: Place, waiting: dict[str, Any]) -> None:
        known = set(self.batches)
        super().load(place, {key: rows for key, rows in waiting.items() if key not in known})

    def waiting(self) -> dict[Place, Any]:
        rows = {key: [visit.event for visit in visits] for key, visits in self.batches.items()}
        return {NOWHERE: rows} if rows else {}


class GivesAllThatWaitsToEach(Plain):
    hello = Plain.hello | {"name": "broken/gives_all_that_waits_to_each", "programs": ["batcher"]}
    programs = Plain.programs | {"batcher": InOneFile}

    def keep(self) -> dict[Place, str]:
        names = super().keep()
        places = [Place(each.topic, each.partition) for each in self.committed]
        return {place: name for place in places for name in names.values()}


serve(GivesAllThatWaitsToEach())
