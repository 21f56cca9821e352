"""A small design, played on any plan, that shares nothing with the models.

It reads, batches, conflates, repeats, is killed and restored as its mode allows. Its sins are a few
lines each.
"""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

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


@dataclass(frozen=True)
class Plan:
    """An input, and the lives of a design.

    A life is batches that were committed, then one that a kill met half-way.
    """

    program: str
    mode: str
    # Kind, partition, (account, cents).
    inputs: tuple[tuple[str, int, tuple[tuple[int, int], ...]], ...]
    # Committed batches, outputs of the one that was open.
    lives: tuple[tuple[tuple[Batch, ...], int], ...]
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
    """Small ones: up to a dozen inputs, up to two kills."""
    kind = st.sampled_from(["entry"] * 4 + list(kinds))
    first = st.tuples(st.just("entry"), st.integers(0, 1), POSTINGS)
    others = st.lists(
        st.tuples(kind, st.integers(0, 1), POSTINGS | st.just(())), min_size=2, max_size=11
    )
    return st.builds(
        Plan,
        program=st.sampled_from(programs or ("ledger", "relay")),
        mode=st.sampled_from(list(modes)),
        inputs=st.tuples(first, others).map(lambda drawn: (drawn[0], *drawn[1])),
        lives=st.lists(
            st.tuples(st.lists(BATCHES, max_size=2).map(tuple), st.integers(0, 6)), max_size=lives
        ).map(tuple),
        last=BATCHES,
    )


@dataclass
class State:
    """The memory of a design.

    It holds per account the sum, the count and the first hop, and per partition the next offset.
    """

    accounts: dict[str, tuple[int, int, tuple[Any, ...]]] = field(default_factory=dict)
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
                self._emit(self._process(batch), batch)
            committed = deepcopy(self.state)
            rows = self._process(Batch(3, conflates=False, repeats=False))
            if not exactly_once:  # what was sent before the commit stays, the rest of it never was
                self._emit(rows[:open_outputs], Batch(3, conflates=False, repeats=False))
            self.state = committed
            story.kill()
            story.settled(*committed.positions)
            story.claims("fold")
            if exactly_once:
                story.claims("whole")
        story.start()
        while rows := self._process(self.plan.last):
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

    def _process(self, batch: Batch) -> list[tuple[Any, ...]]:
        """Take the next records; the arguments of the outputs that they make, or None where a
        record makes none.
        """
        made: list[tuple[Any, ...]] = []
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
                made += (
                    [(partition, record)] if self.plan.program == "relay" else self._apply(record)
                )
        return made or ([()] if taken else [])

    def _counts(self, record: Record) -> bool:
        return record.visible or record == self.sin.counts

    def _apply(self, record: Record) -> list[tuple[Any, ...]]:
        envelope = Envelope.FromString(record.value or b"")
        hop = envelope.chain[0] if envelope.chain else None
        place = (
            (hop.topic, hop.partition, hop.topic_id, hop.offset)
            if hop
            else ("own", 0, b"", record.offset)
        )
        rows: list[tuple[Any, ...]] = []
        for account in sorted({posting.account for posting in envelope.postings}):
            cents, count, last = self.state.accounts.get(account, (0, 0, ("", 0, b"", 0)))
            if place[:3] == last[:3] and place[3] <= last[3] and not self.sin.applies_repeats:
                continue
            if self.sin.leaves_out == (record, account):
                continue
            amounts = [
                posting.amount_cents for posting in envelope.postings if posting.account == account
            ]
            self.state.accounts[account] = (cents + sum(amounts), count + len(amounts), place)
            rows.append((record.partition, account, *self.state.accounts[account][:2], record))
        return rows

    def _emit(self, rows: list[tuple[Any, ...]], batch: Batch) -> None:
        rows = [row for row in rows if row]
        if batch.conflates and self.plan.program == "ledger":
            rows = list({row[1]: row for row in rows}.values())
        for row in rows:
            for _ in range(2 if batch.repeats and self.plan.mode == "at_least_once" else 1):
                partition, *output = row
                if self.plan.program == "relay":
                    self.story.copy(*output, partition=partition)
                else:
                    self.story.row(*output, partition=partition)


@dataclass
class Edit:
    """A played history whose outputs can be changed before it is judged."""

    design: Design

    @property
    def outputs(self) -> list[Record]:
        """Every output in the order of the history."""
        story = self.design.story
        return [
            e for e in story.history.events if isinstance(e, Record) and e.topic == story.writes
        ]

    def by_key(self) -> dict[bytes, list[Record]]:
        """The outputs of each key."""
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
    """The history of this plan."""
    return Edit(Design(plan, sin).play())
