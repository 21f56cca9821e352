"""Entries for `ledger` and its kin: branches that post to accounts.

The workload has all that trips a careless design, as real ledgers have:

- a few branches and accounts take most of the traffic
- an entry touches one account twice, or none, or cancels itself out
- some amounts are odd numbers above 2^53, and a float cannot hold one
- aborted attempts stand between committed ones and end every partition

One seed makes the same bytes in any process.
"""

import json
import random
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, count, cycle
from typing import Final, NamedTuple, TypedDict, Unpack

from faker import Faker
from google.protobuf.message import DecodeError

from upheld.generators.envelope_pb2 import Envelope, Hop, Posting
from upheld.generators.placement import placed, slots_of

EPOCH_MS: Final = 1_700_000_000_000
WAVE_MS: Final = 24 * 3_600_000  # a wave begins a day after the one before it
WAVE_OFFSETS: Final = (
    10_000_000  # and that far behind it in the topics upstream, where gaps are nothing new
)
POSTINGS_MAX: Final = 8
OWNERS_MAX: Final = 500  # further accounts have the same owners again
STEP_BACK: Final = 0.004  # how many entries are followed by repeats
STEP_BACK_MAX: Final = 50
ENTRIES_A_REPEAT: Final = 20  # at most, all in all
FLAWED_MAX: Final = 4  # records one after the other that cannot be read
FLAWS: Final = (
    "without a value",
    "without a key",
    "that is JSON",
    "that is cut short",
    "of other bytes",
)
FLOAT_EXACT: Final = 2**53  # a double holds every integer up to here, and no odd one beyond

KEPT: Final = 8  # workloads of 1,000 to 20,000 records, and what is counted in them

_KINDS: Final = ("none", "zero", "huge", "twice", "cancels") + ("plain",) * 27


class Send(NamedTuple):
    """One record to be written, in the order of the list.

    The records of one aborted transaction stand together.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int
    partition: int
    transaction: int | None = None  # numbers the transaction that is aborted after its last record
    role: str = ""  # which of a join's two inputs

    @property
    def aborted(self) -> bool:
        """Whether the record belongs to an aborted transaction.

        Nothing may come of such a record.
        """
        return self.transaction is not None


class Knobs(TypedDict, total=False):
    """The arguments of `ledger`, all by name.

    Each of them has its default in `Workload`.
    """

    entries: int
    accounts: int
    branches: int
    partitions: int
    idle: int
    aborted_transactions: int
    republished: bool
    moved: bool
    doomed: bool
    flawed: bool
    wave: int


@dataclass(frozen=True)
class Workload:
    """The numbers that the entries of one workload are made from."""

    seed: int
    entries: int = 4_000
    accounts: int = 64
    branches: int = 16
    partitions: int = 4
    idle: int = 0
    aborted_transactions: int = 6
    republished: bool = False
    moved: bool = False
    doomed: bool = False
    flawed: bool = False
    wave: int = 0

    @property
    def used(self) -> int:
        """How many partitions have records."""
        return self.partitions - self.idle

    def check(self) -> None:
        """Raise ValueError if no workload can have these numbers."""
        if not 1 <= self.used <= self.branches <= min(self.accounts, self.entries):
            raise ValueError(
                "a ledger needs partitions <= branches <= accounts, and an entry for every branch"
            )
        touched = 2 * self.entries
        if self.accounts > touched:
            raise ValueError(
                f"{self.entries} entries touch at most {touched} accounts in turn, not "
                f"{self.accounts}"
            )


@lru_cache(maxsize=KEPT)
def ledger(seed: int, **knobs: Unpack[Knobs]) -> tuple[Send, ...]:
    """Make the records of one workload, in the order in which they are sent.

    Aborted and repeated records, and those that cannot be read, come on top of `entries`. With at
    least as many accounts as entries each account is touched in its turn. With fewer accounts they
    are drawn by Zipf's law.

    Args:
        seed: The same seed and knobs make the same bytes.
        **knobs: The fields of `Workload`, by name. Some need more words than their names:

            `partitions` are those of the topic. The names of branches are chosen so that murmur2
            spreads them evenly. The last `idle` ones are the partition of no branch.

            `republished` gives each entry its first hop in a topic upstream. It also repeats runs
            of up to 50 entries, as a relay does that stepped back.

            `moved` changes the place upstream half-way, and offsets start again from 0. A third of
            the branches get another topic, a third another partition, and a third another topic
            id.

            `doomed` puts all records into one transaction that is aborted.

            `flawed` adds records that cannot be read. Each partition begins and ends with one;
            there are runs of them in between, and some in what is aborted.

            `wave` is above 0 for what arrives later: new entries of the same branches and accounts.
    """
    workload = Workload(seed, **knobs)
    workload.check()
    sends = _sends(workload)
    return tuple(send._replace(transaction=0) for send in sends) if workload.doomed else sends


def _sends(workload: Workload) -> tuple[Send, ...]:
    entries = workload.entries
    flawed = workload.flawed
    mint = _Mint(workload)
    upstream = (
        _Upstream(mint, moved=workload.moved, first=workload.wave * WAVE_OFFSETS)
        if workload.republished or workload.moved
        else None
    )
    aborted_at = _stations(mint.rng, entries, workload.aborted_transactions - 1)
    flawed_at = mint.flawed_at(entries) if flawed else defaultdict[int, list[int]](list)
    relay = _SteppingBack(mint.rng) if workload.republished else None
    transactions = count()
    sends: list[Send] = []
    for number in range(entries):
        if upstream and workload.moved and number == entries // 2:
            upstream.move()
            if relay:
                relay.forget()
        for _ in range(aborted_at[number]):
            sends += mint.aborted(next(transactions), upstream, flawed=flawed)
        sends += mint.unreadable(flawed_at[number])
        send = mint.entry(mint.pick_branch(number), upstream)
        sends.append(send)
        if relay:
            sends += relay.repeats_after(send)
    if relay:
        sends += relay.repeats_at_the_end(entries)
    sends += mint.unreadable(flawed_at[entries])
    if workload.aborted_transactions:
        sends += mint.aborted(next(transactions), upstream, flawed=flawed)
    return tuple(sends)


@lru_cache(maxsize=KEPT)
def facts(sends: tuple[Send, ...]) -> dict[str, int]:
    """Count the facts of a workload that reports state and tests demand."""
    seen: set[str] = set()
    touched: set[str] = set()
    counts: Counter[str] = Counter()
    for send in sends:
        if send.aborted:
            counts["aborted"] += 1
        elif (envelope := _read(send)) is None:
            counts["unreadable"] += 1
        elif envelope.id in seen:
            counts["repeated"] += 1
        else:
            seen.add(envelope.id)
            postings = [(posting.account, posting.amount_cents) for posting in envelope.postings]
            touched.update(account for account, _ in postings)
            counts["entries_with_chain"] += bool(envelope.chain)
            _count_postings(counts, postings)
    return {
        "records": len(sends),
        "entries": len(seen),
        "keys": len({send.key for send in sends}),
        "accounts": len(touched),
        "partitions": len({send.partition for send in sends}),
        "aborted_transactions": len({send.transaction for send in sends if send.aborted}),
        **{name: counts[name] for name in _COUNTED},
    }


def _count_postings(counts: Counter[str], postings: list[tuple[str, int]]) -> None:
    counts["postings"] += len(postings)
    counts["entries_without_postings"] += not postings
    counts["entries_twice_on_an_account"] += len(dict(postings)) < len(postings)
    for _, amount in postings:
        if amount == 0:
            counts["postings_zero"] += 1
        elif amount < 0:
            counts["postings_negative"] += 1
        if abs(amount) > FLOAT_EXACT:
            counts["postings_above_2_53"] += 1


def _read(send: Send) -> Envelope | None:
    if send.key is None or send.value is None:
        return None
    try:
        return Envelope.FromString(send.value)
    except DecodeError:
        return None


_COUNTED: Final = (
    "aborted",
    "repeated",
    "unreadable",
    "postings",
    "postings_zero",
    "postings_negative",
    "postings_above_2_53",
    "entries_without_postings",
    "entries_twice_on_an_account",
    "entries_with_chain",
)


class _Names(NamedTuple):
    """The names in the workloads of one seed."""

    branches: tuple[str, ...]
    owners: tuple[str, ...]
    tellers: tuple[bytes, ...]


@lru_cache(maxsize=KEPT)
def _names(seed: int, branches: int, owners: int) -> _Names:
    """Return names, which are the same in every wave and take as long as 300 entries."""
    fake = Faker("en_GB")
    fake.seed_instance(seed)
    return _Names(
        branches=tuple([f"{_slug(fake.city())}-{number:02}" for number in range(branches)]),
        owners=tuple([_slug(fake.last_name()) for _ in range(owners)]),
        tellers=tuple([fake.name().encode() for _ in range(32)]),
    )


def _keys(names: tuple[str, ...], workload: Workload) -> tuple[str, ...]:
    """Return a key for each branch; the branches take the partitions in use in turn."""
    slots = slots_of(workload.partitions)
    keys = []
    for number, name in enumerate(names):
        round_, partition = divmod(number, workload.used)
        keys.append(placed(name, round_ * workload.partitions + partition, slots))
    return tuple(keys)


class _Mint:
    """Makes records one after the other; keeps the clock, ids and balances."""

    def __init__(self, workload: Workload) -> None:
        seed = workload.seed
        wave = workload.wave
        entries = workload.entries
        accounts = workload.accounts
        branches = workload.branches
        self.rng = random.Random(f"{seed}/{wave}")
        self.partitions = workload.used
        self._series = f"{seed}-{wave}"
        self._number = 0
        self._clock_ms = EPOCH_MS + seed % 500_000 * 60_000 + wave * WAVE_MS
        self._balance: defaultdict[str, int] = defaultdict(int)
        names, owners, self._tellers = _names(seed, branches, min(accounts, OWNERS_MAX))
        self.branches = _keys(names, workload)
        self._accounts: list[list[str]] = [[] for _ in self.branches]
        for number in range(accounts):
            self._accounts[number % branches].append(f"{owners[number % len(owners)]}-{number:05}")
        self._branch_weights = zipf(branches)
        self._account_weights = [zipf(len(names)) for names in self._accounts]
        self._kinds = self._deck()
        self._flaws = cycle(FLAWS)
        self._untouched = [iter(names) for names in self._accounts] if accounts >= entries else None
        self._turns = [len(range(branch, entries, branches)) for branch in range(branches)]
        self._owed = [len(names) for names in self._accounts]

    def pick_branch(self, number: int) -> int:
        """Choose the branch of an entry.

        If every account has a turn, so has every branch. Else branches are drawn by Zipf's law.
        """
        if self._untouched:
            return number % len(self.branches)
        return drawn(self.rng, self._branch_weights)

    def entry(self, branch: int, upstream: "_Upstream | None") -> Send:
        """Make an entry that counts."""
        kind = next(self._kinds)
        postings = self._postings(branch, kind, self._turn(branch, kind))
        for posting in postings:
            self._balance[posting.account] += posting.amount_cents
        return self._send(branch, postings, [upstream.hop(branch)] if upstream else [])

    def aborted(
        self, transaction: int, upstream: "_Upstream | None", *, flawed: bool = False
    ) -> list[Send]:
        """Make one aborted transaction: a record or two of each partition.

        If the workload is flawed, the transaction also has records that cannot be read.
        """
        sends = []
        for partition in range(self.partitions):
            for step in range(self.rng.randint(1, 2)):
                branch = self.rng.choice(range(partition, len(self.branches), self.partitions))
                chain = [upstream.hop(branch, ahead=step)] if upstream else []
                sends.append(
                    self._send(branch, self._postings(branch, "plain", []), chain, transaction)
                )
        return sends + (self.unreadable(range(self.partitions), transaction) if flawed else [])

    def flawed_at(self, entries: int) -> defaultdict[int, list[int]]:
        """Choose before which entries unreadable records stand, and of which branches.

        Each partition begins and ends with one.
        """
        at = defaultdict[int, list[int]](
            list, {number: list(range(self.partitions)) for number in (0, entries)}
        )
        for number in _stations(self.rng, entries, max(1, entries // 100)).elements():
            at[number] += [self.rng.randrange(len(self.branches))] * self.rng.randint(1, FLAWED_MAX)
        return at

    def unreadable(self, branches: Iterable[int], transaction: int | None = None) -> list[Send]:
        """Make a record of each of these branches that cannot be read.

        Some have no headers, and some have the headers of a dead letter.
        """
        sends = []
        for branch in branches:
            good = self._send(branch, self._postings(branch, "plain", []), [], transaction)
            send = _spoiled(good, next(self._flaws), self.rng)
            more: tuple[tuple[str, bytes], ...] = (("reason", b""), ("offset", b"0"))
            sends.append(
                send._replace(headers=self.rng.choice([send.headers, (), (*send.headers, *more)]))
            )
        return sends

    def _send(
        self, branch: int, postings: list[Posting], chain: list[Hop], transaction: int | None = None
    ) -> Send:
        self._clock_ms += self.rng.randint(1, 5)
        envelope = Envelope(
            id=f"{self._series}-{self._number:06}",
            timestamp_ms=self._clock_ms,
            chain=chain,
            postings=postings,
        )
        self._number += 1
        return Send(
            key=self.branches[branch].encode(),
            value=envelope.SerializeToString(deterministic=True),
            headers=self._headers(),
            timestamp_ms=self._clock_ms,
            partition=branch % self.partitions,
            transaction=transaction,
        )

    def _headers(self) -> tuple[tuple[str, bytes], ...]:
        trace = self.rng.getrandbits(128)
        span = self.rng.getrandbits(64)
        headers = [("traceparent", f"00-{trace:032x}-{span:016x}-01".encode())]
        if trace % 2:
            headers.append(("teller", self._tellers[trace % 31]))
        # A header's name may come twice, and a value may be no text or nothing at all.
        if trace % 8 == 0:
            headers += [
                ("teller", self._tellers[trace % 31]),
                ("teller", b""),
                ("digest", span.to_bytes(8)),
            ]
        return tuple(headers)

    def _deck(self) -> Iterator[str]:
        """Deal every kind of entry again and again.

        So even a short workload has some of each.
        """
        while True:
            yield from self.rng.sample(_KINDS, len(_KINDS))

    def _turn(self, branch: int, kind: str) -> list[str]:
        """Take the accounts that this entry has to touch.

        The branch's last entry then leaves none out.
        """
        if not self._untouched:
            return []
        spared = kind == "none" and self._turns[branch] > 1
        due = 0 if spared else -(-self._owed[branch] // self._turns[branch])
        self._turns[branch] -= 1
        self._owed[branch] -= due
        return [next(self._untouched[branch]) for _ in range(due)]

    def _postings(self, branch: int, kind: str, due: list[str]) -> list[Posting]:
        if kind == "none" and not due:
            return []
        drawn = self._draw(branch, self.rng.randint(1, POSTINGS_MAX - 1))
        names = due or (drawn if kind == "twice" else list(dict.fromkeys(drawn)))
        if kind in {"twice", "cancels"}:
            names = [*names, names[0]]
        amounts = [self._amount() for _ in names]
        match kind:
            case "zero":
                amounts[0] = 0
            case "huge":
                amounts[0] = self._huge(names[0])
            case "cancels":
                amounts[-1] = -amounts[0]
        return [
            Posting(account=name, amount_cents=amount)
            for name, amount in zip(names, amounts, strict=True)
        ]

    def _draw(self, branch: int, count: int) -> list[str]:
        names = self._accounts[branch]
        weights = self._account_weights[branch]
        return [names[drawn(self.rng, weights)] for _ in range(count)]

    def _amount(self) -> int:
        amount = self.rng.randint(1, 500_000)
        return -amount if self.rng.random() < 0.4 else amount

    def _huge(self, account: str) -> int:
        """Draw an odd amount above 2^53 whose sign leads the balance back.

        So no sum leaves 64 bits.
        """
        amount = FLOAT_EXACT + 1 + 2 * self.rng.randrange(2**51)
        return -amount if self._balance[account] > 0 else amount


class _Upstream:
    """The topics that a republishing relay read the entries from.

    It knows which position each entry has there.
    """

    def __init__(self, mint: _Mint, *, moved: bool, first: int) -> None:
        self._mint = mint
        self._split = moved  # one topic for each third of the branches, to move its own way
        self._moved = False
        self._next: defaultdict[tuple[str, int, bytes], int] = defaultdict(lambda: first)
        self._ids = [mint.rng.randbytes(16) for _ in range(2)]

    def move(self) -> None:
        """Move three topics, each in its way.

        The first gets another name, the second other partitions; the third is deleted and
        recreated.
        """
        self._moved = True

    def hop(self, branch: int, ahead: int | None = None) -> Hop:
        """Take the next position of a branch.

        With `ahead` it is a position beyond the next one that a failed attempt gives back.
        """
        partitions = self._mint.partitions
        topic = "upstream"
        partition = (branch + 1) % partitions
        topic_id = b""
        if self._split:
            match branch % 3:
                case 0:
                    topic = "upstream-renamed" if self._moved else "upstream"
                case 1:
                    topic = "upstream-spread"
                    partition = partition + partitions * self._moved
                case _:
                    topic = "upstream-recreated"
                    topic_id = self._ids[self._moved]
        place = (topic, partition, topic_id)
        offset = self._next[place]
        if ahead is None:
            self._next[place] += 1
        return Hop(
            topic=topic, partition=partition, offset=offset + (ahead or 0), topic_id=topic_id
        )


class _SteppingBack:
    """The relay upstream, which now and then steps back and repeats a run of entries."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        # Per partition, what was played since its upstream last moved.
        self._played: defaultdict[int, list[Send]] = defaultdict(list)
        self._repeats = 0

    def forget(self) -> None:
        """Take what was played so far out of reach: the upstream has moved."""
        self._played.clear()

    def repeats_after(self, send: Send) -> list[Send]:
        """Play an entry, and return what is repeated after it, mostly nothing."""
        run = self._played[send.partition]
        run.append(send)
        return self._step_back(run) if self._rng.random() < STEP_BACK else []

    def repeats_at_the_end(self, entries: int) -> list[Send]:
        """Repeat more runs until there is a repeat for every 20 entries."""
        sends: list[Send] = []
        while self._repeats * ENTRIES_A_REPEAT < entries:
            runs = [self._played[partition] for partition in sorted(self._played)]
            sends += self._step_back(self._rng.choice(runs))
        return sends

    def _step_back(self, run: list[Send]) -> list[Send]:
        again = run[-self._rng.randint(1, STEP_BACK_MAX) :]
        self._repeats += len(again)
        return again


def unreadable(seed: int, flaw: str, partitions: int) -> Send:
    """Return an entry that cannot be read, for partition 0 of a topic."""
    entry, *_ = ledger(
        seed,
        entries=partitions,
        accounts=partitions,
        branches=partitions,
        partitions=partitions,
        aborted_transactions=0,
    )
    return _spoiled(entry, flaw, random.Random(seed))


def _spoiled(send: Send, flaw: str, rng: random.Random) -> Send:
    """Return an entry as no reader of envelopes can read it, whatever its library."""
    value = send.value or b""
    match flaw:
        case "without a value":
            return send._replace(value=None)
        case "without a key":
            return send._replace(key=None)
        case "that is JSON":
            return send._replace(value=json.dumps({"id": value.hex()}).encode())
        case "that is cut short":
            return send._replace(value=value[: -rng.randint(1, 5)])  # within its last field
    # Wire type 7, which there is none of.
    return send._replace(value=b"\xff" + rng.randbytes(rng.randint(0, 30)))


def _stations(rng: random.Random, entries: int, transactions: int) -> Counter[int]:
    """Choose before which entries an aborted transaction stands."""
    return (
        Counter(rng.randrange(1, entries) for _ in range(transactions))
        if entries > 1
        else Counter()
    )


def zipf(count: int, exponent: float = 1.1) -> list[float]:
    """Return Zipf's law as cumulated weights."""
    return list(accumulate(1 / rank**exponent for rank in range(1, count + 1)))


def drawn(rng: random.Random, weights: list[float]) -> int:
    """Draw an index by cumulated weights, as `choices` does in three times as long."""
    return bisect(weights, rng.random() * weights[-1], 0, len(weights) - 1)


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())
