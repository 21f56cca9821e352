"""Calls its transactional id after host and process.

The mistake is to expect a broker of one's own. It shows on a shared broker: the application's id is
no part of the name.
"""

import os
import socket
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class NamesItsIdsAfterItsHost(Plain):
    hello = Plain.hello | {"name": "broken/names_its_ids_after_its_host"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        return super().open(start) | {"transactional_id_prefix": start["application_id"]}

    def transactional_id(self) -> str:
        return f"{socket.gethostname()}-{os.getpid()}"


serve(NamesItsIdsAfterItsHost())
