"""Commits what it has read also where it could not write down what waits.

Whoever takes a full disk for a matter of the monitoring makes this mistake: it shows when it dies
with the disk still full, since what waited is gone then.
"""

from contextlib import suppress

from upheld.adapter import serve
from upheld.impl.plain import Plain


class CommitsWithoutItsDisk(Plain):
    hello = Plain.hello | {"name": "broken/commits_without_its_disk"}

    def keep(self) -> str:
        with suppress(OSError):
            return super().keep()
        return ""


serve(CommitsWithoutItsDisk())
