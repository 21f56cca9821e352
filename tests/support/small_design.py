"""A small design, played on any plan, that shares nothing with the models.

It reads, batches, conflates, repeats, is killed and restored as its mode allows. Its sins are a few
lines each.
"""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

from histories import Story
from hypothesis import strategies as st

from upheld.generators.envelope_pb2 import Envelope
from upheld.history import History
from upheld.history.events import Record

ACCOUNTS = (("ada", "bob"), ("eve", "zoe"))  # those of the branch in each partition
MODES = ("exactly_once", "at_least_once")


@dataclass(frozen=True)
class Batch:
    """The number of records that a design takes from each partition, and their form."""

    size: int
    conflates: bool
    repeats: bool


class Input(NamedTuple):
    """A change of a partition of the input; a posting is an account and its cents."""

    kind: str
    partition: int
    postings: tuple[tuple[int, int], ...]


class Life(NamedTuple):
    """Batches that were committed, then one that a kill met half-way."""

    committed: tuple[Batch, ...]
    open_outputs: int


@dataclass(frozen=True)
class Plan:
    """An input, and the lives of a design."""

    program: str
    mode: str
    inputs: tuple[Input, ...]
    lives: tuple[Life, ...]
    last: Batch


BATCHES = st.builds(Batch, size=st.integers(1, 4), conflates=st.booleans(), repeats=st.booleans())
POSTINGS = st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 100)), min_size=1, max_size=4).map(
    tuple
)


def plans(
    *programs: str,
    modes: Iterable[str] = MODES,
    kinds: Iterable[str] = ("aborted", "again", "move", "gap"),
    lives: int = 2,
) -> st.SearchStrategy[Plan]:
    """Return small plans: up to a dozen inputs, up to two kills."""
    kind = st.sampled_from(["entry"] * 4 + list(kinds))
    first = st.builds(Input, st.just("entry"), st.integers(0, 1), POSTINGS)
    other = st.builds(Input, kind, st.integers(0, 1), POSTINGS | st.just(()))
    others = st.lists(other, min_size=2, max_size=11)
    life = st.builds(Life, st.lists(BATCHES, max_size=2).map(tuple), st.integers(0, 6))
    return st.builds(
        Plan,
        program=st.sampled_from(programs or ("ledger", "relay")),
        mode=st.sampled_from(list(modes)),
        inputs=st.tuples(first, others).map(lambda drawn: (drawn[0], *drawn[1])),
        lives=st.lists(life, max_size=lives).map(tuple),
        last=BATCHES,
    )


class Place(NamedTuple):
    """The first position of an entry."""

    topic: str
    partition: int
    topic_id: bytes
    offset: int

    def repeats(self, last: "Place") -> bool:
        """Return whether an entry from here is a repeat, after one from the last place."""
        return self[:3] == last[:3] and self.offset <= last.offset


class Account(NamedTuple):
    """The sum and the number of an account's postings, and its last entry's place."""

    cents: int = 0
    postings: int = 0
    last: Place = Place("", 0, b"", 0)


class Output(NamedTuple):
    """An output before it is written; a relay's has no account and no sum."""

    partition: int
    entry: Record
    name: str = ""
    account: Account = Account()


@dataclass
class State:
    """The memory of a design.

    It holds each account with its sum, count and last place, and each partition's next offset.
    """

    accounts: dict[str, Account] = field(default_factory=dict)
    positions: list[int] = field(default_factory=lambda: [0, 0])


@dataclass(frozen=True)
class Sin:
    """The mistake of this design, if it makes any."""

    counts: Record | None = None  # this aborted entry
    leaves_out: tuple[Record, str] | None = None  # this entry for this account
    applies_repeats: bool = False


class Design:
    """Reads an input as a plan says, and writes its outputs into the story."""

    def __init__(self, plan: Plan, sin: Sin = Sin(), story: Story | None = None) -> None:
        self.plan = plan
        self.sin = sin
        self.story = story or Story(plan.program, plan.mode)
        self.story.names("app")
        self.log = self._input()
        self.state = State()

    def _input(self) -> list[list[Record]]:
        story = self.story
        log: list[list[Record]] = [[], []]
        # What a relay upstream can repeat since its topic last moved.
        since: list[list[Record]] = [[], []]
        upstream = [0, 0]
        offsets = [10, 10]
        for kind, partition, postings in self.plan.inputs:
            pairs = [(ACCOUNTS[partition][account], cents) for account, cents in postings]
            branch = ("north", "south")[partition]
            if kind == "gap":
                story.gap(1 + len(postings), partition)
            elif kind == "aborted":
                log[partition].append(story.aborted(*pairs, partition=partition, branch=branch))
            elif kind == "again":
                run = since[partition][-1 - len(postings) :]
                log[partition] += [story.again(record) for record in run]
            else:
                if kind == "move":
                    upstream[partition] += 1
                    offsets[partition] = 3
                    since[partition].clear()
                via = (
                    "up",
                    upstream[partition] // 2,
                    offsets[partition],
                    b"id" * (upstream[partition] % 2),
                )
                offsets[partition] += 1
                headers = [("trace", b"%d" % len(pairs)), ("trace", None)]
                entry = story.entry(
                    *pairs, via=[via], partition=partition, branch=branch, headers=headers
                )
                log[partition].append(entry)
                since[partition].append(entry)
        return log

    def play(self) -> "Design":
        """Live every life of the plan, then drain the input.

        The claims of the features stand where they are made.
        """
        story = self.story
        exactly_once = self.plan.mode == "exactly_once"
        for batches, open_outputs in self.plan.lives:
            story.start()
            for batch in batches:
                self._emit(self._process(batch) or [], batch)
            committed = deepcopy(self.state)
            rows = self._process(Batch(3, conflates=False, repeats=False)) or []
            if not exactly_once:  # what was sent before the commit stays, the rest of it never was
                self._emit(rows[:open_outputs], Batch(3, conflates=False, repeats=False))
            self.state = committed
            story.kill()
            story.settled(*committed.positions)
            story.claims("fold")
            if exactly_once:
                story.claims("whole")
        story.start()
        while (rows := self._process(self.plan.last)) is not None:
            self._emit(rows, self.plan.last)
        story.rests()
        for check in ("relation", "whole", "preserved", "promptly"):
            story.claims(check)
        if self.plan.lives and not exactly_once:
            story.claims("below-the-commit")
        story.kill()
        story.settled(*self.state.positions)
        story.claims("fold")
        story.names("app")
        story.claims("side-effects")
        return self

    def _process(self, batch: Batch) -> list[Output] | None:
        """Take the next records, and return the outputs that they make.

        If no record is left, there is no list.
        """
        made: list[Output] = []
        taken = False
        for partition, records in enumerate(self.log):
            unread = [
                r
                for r in records
                if r.offset >= self.state.positions[partition] and self._counts(r)
            ]
            for record in unread[: batch.size]:
                taken = True
                self.state.positions[partition] = record.offset + 1
                if self.plan.program == "relay":
                    made.append(Output(partition, record))
                else:
                    made += self._apply(record)
        return made if taken else None

    def _counts(self, record: Record) -> bool:
        return record.visible or record == self.sin.counts

    def _apply(self, record: Record) -> list[Output]:
        envelope = Envelope.FromString(record.value or b"")
        hop = envelope.chain[0] if envelope.chain else None
        place = (
            Place(hop.topic, hop.partition, hop.topic_id, hop.offset)
            if hop
            else Place("own", 0, b"", record.offset)
        )
        rows: list[Output] = []
        for account in sorted({posting.account for posting in envelope.postings}):
            before = self.state.accounts.get(account, Account())
            if place.repeats(before.last) and not self.sin.applies_repeats:
                continue
            if self.sin.leaves_out == (record, account):
                continue
            amounts = [
                posting.amount_cents for posting in envelope.postings if posting.account == account
            ]
            now = Account(before.cents + sum(amounts), before.postings + len(amounts), place)
            self.state.accounts[account] = now
            rows.append(Output(record.partition, record, account, now))
        return rows

    def _emit(self, rows: list[Output], batch: Batch) -> None:
        if batch.conflates and self.plan.program == "ledger":
            rows = list({row.name: row for row in rows}.values())
        times = 2 if batch.repeats and self.plan.mode == "at_least_once" else 1
        for row in rows:
            for _ in range(times):
                self._write(row)

    def _write(self, row: Output) -> None:
        if self.plan.program == "relay":
            self.story.copy(row.entry, partition=row.partition)
            return
        cents, postings, _ = row.account
        self.story.row(row.name, cents, postings, row.entry, partition=row.partition)


@dataclass
class Edit:
    """A played history whose outputs can be changed before it is judged."""

    design: Design

    @property
    def outputs(self) -> list[Record]:
        """Return every output in the order of the history."""
        story = self.design.story
        return [
            e for e in story.history.events if isinstance(e, Record) and e.topic == story.writes
        ]

    def by_key(self) -> dict[bytes, list[Record]]:
        """Return the outputs of each key."""
        keys: dict[bytes, list[Record]] = {}
        for record in self.outputs:
            keys.setdefault(record.key or b"", []).append(record)
        return keys

    def history(self, *changes: tuple[Record, list[Record]]) -> History:
        """Return the history with each of these outputs replaced by others.

        Every output is given the offset of its new place.
        """
        return self.design.story.edited(*changes)


def played(plan: Plan, sin: Sin = Sin()) -> Edit:
    """Return the history of this plan."""
    return Edit(Design(plan, sin).play())
