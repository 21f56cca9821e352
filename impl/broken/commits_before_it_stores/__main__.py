"""Commits its offsets first, and stores the states that they count in afterwards.

Whoever takes the store for a copy makes this mistake. It shows when the store takes nothing for a
while, or in a crash.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain


class CommitsBeforeItStores(Plain):
    hello = Plain.hello | {
        "name": "broken/commits_before_it_stores",
        "capabilities": ["reusable", "sqlite", "redis", "cassandra"],
    }

    def commit(self) -> None:
        store, unsaved, self.store = self.store, self.program.unsaved, None
        super().commit()
        self.store = store
        if store and unsaved:
            store.write(self.program.writes, unsaved)


serve(CommitsBeforeItStores())
