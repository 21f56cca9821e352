"""Takes a new transactional id on every start, and sends its offsets as a stranger to the group.

Whoever makes ids unique to be rid of fencing errors makes this mistake. It shows where an instance is paused in a
transaction, a successor takes over before that times out, and the first one goes on.
"""

from uuid import uuid4

from confluent_kafka import Consumer

from streamgate.adapter import serve
from streamgate.impl.plain import Plain


class TakesANewIdOnEveryStart(Plain):
    hello = Plain.hello | {"name": "broken/takes_a_new_id_on_every_start"}

    def transactional_id(self) -> str:
        self.stranger = Consumer(self.client | {"group.id": self.group})
        return f"{super().transactional_id()}-{uuid4()}"

    def membership(self) -> object:
        return self.stranger.consumer_group_metadata()


serve(TakesANewIdOnEveryStart())
