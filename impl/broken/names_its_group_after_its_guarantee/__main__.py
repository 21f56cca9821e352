"""Has a group for each guarantee, in whose name the guarantee stands.

The mistake is a name that hangs on a setting. It shows where the guarantee is changed: a group that
has no offsets yet begins at the first record once more.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class NamesItsGroupAfterItsGuarantee(Plain):
    hello = Plain.hello | {"name": "broken/names_its_group_after_its_guarantee"}

    def take_hold(self, start: dict[str, Any]) -> dict[str, Any]:
        named = f"{start['application_id']}-{start['mode']}"
        return super().take_hold(start | {"application_id": named})


serve(NamesItsGroupAfterItsGuarantee())
