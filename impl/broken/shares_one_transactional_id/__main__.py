"""Gives every instance the same transactional id.

So an instance that joins fences all the others. The mistake is to name the id after the
application. It shows as soon as a second instance starts.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain


class SharesOneTransactionalId(Plain):
    hello = Plain.hello | {"name": "broken/shares_one_transactional_id", "modes": ["exactly_once"]}

    def transactional_id(self) -> str:
        return f"{self.start['application_id']}-writer"


serve(SharesOneTransactionalId())
