"""Events for `batcher`: visitors act on the pages of customers, a few of whom have most of the
traffic.

Nulls and aborted attempts stand between the events that count. One seed makes the same bytes in any
process.
"""

import json
import random
from collections.abc import Sequence
from typing import Final

from faker import Faker

from upheld.generators.ledger import EPOCH_MS, WAVE_MS, Send, zipf

ACTIONS: Final = ("click", "scroll", "type", "leave")
_NULLS: Final = 0.02
_ABORTED: Final = (
    4  # transactions that come to nothing, one at the end of every partition among them
)


def visits(  # noqa: PLR0913 (the knobs of a workload stand in the sentence that asks for it, all by name)
    seed: int,
    *,
    events: int = 4_000,
    customers: int = 40,
    partitions: int = 4,
    wave: int = 0,
    plain: bool = False,
) -> list[Send]:
    """Make the records of one workload; nulls and aborted events come on top of `events`.

    With as many customers as events each has one. `plain` leaves nulls and aborted events out. A
    later `wave` of one seed is what arrives next, of the same customers.
    """
    if not 1 <= customers <= events:
        raise ValueError(f"{events} events are not enough for {customers} customers")
    rng = random.Random(f"{seed}/{wave}")
    fake = Faker("en_GB")
    fake.seed_instance(seed)
    names = [f"{fake.domain_word()}-{number:05}" for number in range(customers)]
    weights = zipf(customers, exponent=1)
    clock_ms, sends, transaction = EPOCH_MS + wave * WAVE_MS, list[Send](), 0

    def send(customer: int, transaction: int | None = None, *, null: bool = False) -> Send:
        nonlocal clock_ms
        clock_ms += rng.randint(1, 5)
        value = {
            "customerId": names[customer],
            "visitorId": f"{rng.getrandbits(128):032X}",
            "action": rng.choice(ACTIONS),
        }
        return Send(
            key=names[customer].encode(),
            value=None if null else json.dumps(value).encode(),
            headers=(),
            timestamp_ms=clock_ms,
            partition=customer % partitions,
            transaction=transaction,
        )

    stations = set() if plain else {rng.randrange(events) for _ in range(_ABORTED - 1)}
    for number in range(events):
        if number in stations:
            sends += [send(rng.randrange(customers), transaction) for _ in range(2)]
            transaction += 1
        alone = customers == events or number < customers  # every customer has an event
        customer = (
            number % customers if alone else rng.choices(range(customers), cum_weights=weights)[0]
        )
        if not plain and rng.random() < _NULLS:
            sends.append(send(customer, null=True))
        sends.append(send(customer))
    if not plain:
        sends += [send(customer, transaction) for customer in range(min(partitions, customers))]
    return sends


def facts(sends: Sequence[Send]) -> dict[str, int]:
    """Count what a report states about a workload."""
    counted = [send for send in sends if not send.aborted]
    return {
        "records": len(sends),
        "entries": sum(send.value is not None for send in counted),
        "accounts": len({send.key for send in counted}),
        "nulls": sum(send.value is None for send in counted),
        "aborted": len(sends) - len(counted),
    }
