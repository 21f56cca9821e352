"""Remembers for good of every row that went when it did.

So no older result comes back. The mistake is to add that filter and not its end. It shows where
many rows come and go.
"""

from upheld.adapter import serve
from upheld.impl.plain import Holdings, OutputRecord, Plain


class Resentful(Holdings):
    def changed(self) -> list[OutputRecord]:
        rows = super().changed()
        self.gone = self.__dict__.get("gone", set()) | {
            row.key for row in rows if row.value is None
        }
        return rows


class NeverForgetsDeletions(Plain):
    hello = Plain.hello | {"name": "broken/never_forgets_deletions", "programs": ["holdings"]}
    programs = Plain.programs | {"holdings": Resentful}


serve(NeverForgetsDeletions())
