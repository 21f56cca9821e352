"""Calls its transactional id after the host and the process, as if nobody else were on the broker.

Whoever is alone on his broker makes this mistake. It shows on one that is shared, in what the id is
no part of.
"""

import os
import socket

from upheld.adapter import serve
from upheld.impl.plain import Plain


class NamesItsIdsAfterItsHost(Plain):
    hello = Plain.hello | {"name": "broken/names_its_ids_after_its_host"}

    def transactional_id(self) -> str:
        return f"{socket.gethostname()}-{os.getpid()}"


serve(NamesItsIdsAfterItsHost())
