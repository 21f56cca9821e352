"""The reasons for which a row's end is this machine's, and not the design's."""

import errno
import shutil
from typing import Final

from upheld.trial.rig import Rig

FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# On a disk with less, a broker or a design that writes there has failed for that.
LEAST_ROOM_BYTES: Final = 1 << 16


def trouble(rig: Rig, ended: BaseException | None) -> str | None:
    """Return what went wrong with this machine: a full disk, or the broker's end.

    It is None if nothing did. No design is responsible for it.
    """
    for place in (rig.out, rig.run.scratch):
        if shutil.disk_usage(place).free < LEAST_ROOM_BYTES:
            return f"The disk of {place} is full, so nothing more can be judged; make room there."
    if isinstance(ended, OSError) and ended.errno in FULL:
        return f"Nothing more can be written below {rig.out} ({ended.strerror}); make room there."
    for each, log in ((rig, "broker.log"), (rig.cluster, "cluster.log")):
        if each and each.broker.ended(0):
            return (
                f"The broker ended by itself; the last words of {rig.out / 'logs' / log} "
                "may say why."
            )
    return None
