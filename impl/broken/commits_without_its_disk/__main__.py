"""Commits what it has read even if it could not write down what waits.

The mistake is to leave a full disk to the monitoring. It shows when the design dies with the disk
still full: what waited is gone then.
"""

from contextlib import suppress

from upheld.adapter import serve
from upheld.impl.plain import Place, Plain


class CommitsWithoutItsDisk(Plain):
    hello = Plain.hello | {"name": "broken/commits_without_its_disk"}

    def keep(self) -> dict[Place, str]:
        with suppress(OSError):
            return super().keep()
        return {}


serve(CommitsWithoutItsDisk())
