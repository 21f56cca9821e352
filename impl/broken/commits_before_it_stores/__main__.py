"""Commits its offsets first, and stores the states that they count in later.

The mistake is to take the store for a copy. It shows when the store takes nothing for a while, or
in a crash.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain


class CommitsBeforeItStores(Plain):
    hello = Plain.hello | {
        "name": "broken/commits_before_it_stores",
        "capabilities": ["reusable", "sqlite", "redis", "cassandra"],
    }

    def commit(self) -> None:
        store = self.store
        unsaved = self.program.unsaved
        self.store = None
        super().commit()
        self.store = store
        if store and unsaved:
            store.write(self.program.writes, unsaved)


serve(CommitsBeforeItStores())
