"""Events for `batcher`: visitors act on the pages of customers.

A few customers have most of the traffic. Nulls and aborted attempts stand between the events that
count. One seed makes the same bytes in any process.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypedDict, Unpack

from faker import Faker

from upheld.generators.ledger import EPOCH_MS, KEPT, WAVE_MS, Send, drawn, zipf
from upheld.generators.placement import placed

ACTIONS: Final = ("click", "scroll", "type", "leave")
_NULLS: Final = 0.02
_ABORTED: Final = (
    4  # transactions that come to nothing, one at the end of every partition among them
)


class Knobs(TypedDict, total=False):
    """The arguments of `visits`, all by name.

    Each of them has its default in `Workload`.
    """

    events: int
    customers: int
    partitions: int
    wave: int
    plain: bool


@dataclass(frozen=True)
class Workload:
    """The numbers that the events of one workload are made from."""

    seed: int
    events: int = 4_000
    customers: int = 40
    partitions: int = 4
    wave: int = 0
    plain: bool = False


def visits(seed: int, **knobs: Unpack[Knobs]) -> list[Send]:
    """Make the records of one workload, in the order in which they are sent.

    Nulls and aborted events come on top of `events`. With as many customers as events each customer
    has one event.

    Args:
        seed: The same seed and knobs make the same bytes.
        **knobs: The fields of `Workload`, by name. `plain` leaves nulls and aborted events out. A
            `wave` above 0 is what arrives later, of the same customers.
    """
    workload = Workload(seed, **knobs)
    events = workload.events
    customers = workload.customers
    if not 1 <= customers <= events:
        raise ValueError(f"{events} events are not enough for {customers} customers")
    site = _Site(workload)
    rng = site.rng
    sends = list[Send]()
    transaction = 0
    stations = set() if workload.plain else {rng.randrange(events) for _ in range(_ABORTED - 1)}
    for number in range(events):
        if number in stations:
            sends += [site.send(rng.randrange(customers), transaction) for _ in range(2)]
            transaction += 1
        customer = site.pick(number)
        if not workload.plain and rng.random() < _NULLS:
            sends.append(site.send(customer, is_null=True))
        sends.append(site.send(customer))
    if not workload.plain:
        last = range(min(workload.partitions, customers))
        sends += [site.send(customer, transaction) for customer in last]
    return sends


@lru_cache(maxsize=KEPT)
def _names(seed: int, customers: int, partitions: int) -> tuple[str, ...]:
    """Return the customers' names, which are the same in every wave.

    They are chosen so that the customers take the partitions in turn.
    """
    fake = Faker("en_GB")
    fake.seed_instance(seed)
    return tuple(
        [
            placed(f"{fake.domain_word()}-{number:05}", number, partitions)
            for number in range(customers)
        ]
    )


class _Site:
    """The customers of one workload, and the clock of their events."""

    def __init__(self, workload: Workload) -> None:
        self.rng = random.Random(f"{workload.seed}/{workload.wave}")
        self._workload = workload
        self._clock_ms = EPOCH_MS + workload.wave * WAVE_MS
        self._names = _names(workload.seed, workload.customers, workload.partitions)
        self._weights = zipf(workload.customers, exponent=1)

    def pick(self, number: int) -> int:
        """Return the customer of an event: each customer once, and then by Zipf's law."""
        customers = self._workload.customers
        if customers == self._workload.events or number < customers:
            return number % customers
        return drawn(self.rng, self._weights)

    def send(self, customer: int, transaction: int | None = None, *, is_null: bool = False) -> Send:
        """Make one event of a customer, or a null in its place."""
        self._clock_ms += self.rng.randint(1, 5)
        name = self._names[customer]
        value = {
            "customerId": name,
            "visitorId": f"{self.rng.getrandbits(128):032X}",
            "action": self.rng.choice(ACTIONS),
        }
        return Send(
            key=name.encode(),
            value=None if is_null else json.dumps(value).encode(),
            headers=(),
            timestamp_ms=self._clock_ms,
            partition=customer % self._workload.partitions,
            transaction=transaction,
        )


def facts(sends: Sequence[Send]) -> dict[str, int]:
    """Count the facts of a workload that a report states."""
    counted = [send for send in sends if not send.aborted]
    return {
        "records": len(sends),
        "entries": sum(send.value is not None for send in counted),
        "accounts": len({send.key for send in counted}),
        "nulls": sum(send.value is None for send in counted),
        "aborted": len(sends) - len(counted),
    }
