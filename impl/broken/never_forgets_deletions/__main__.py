"""Remembers of every row that went when it did, so that no older result comes back, and remembers
it for good.

Whoever adds the filter and not its end makes this mistake. It shows where many rows come and go.
"""

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain, Row


class Resentful(Holdings):
    def changed(self) -> list[Row]:
        rows = super().changed()
        self.gone = self.__dict__.get("gone", set()) | {row[0] for row in rows if row[1] is None}
        return rows


class NeverForgetsDeletions(Plain):
    hello = Plain.hello | {"name": "broken/never_forgets_deletions", "programs": ["holdings"]}
    programs = {"holdings": Resentful}  # noqa: RUF012


serve(NeverForgetsDeletions())
