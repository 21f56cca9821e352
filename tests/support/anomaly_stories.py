"""A tiny history of each anomaly, for its picture.

Each is judged by the check that finds it, so no picture shows what the checks would not.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from histories import Story

from upheld.history.events import AnyEvent, Lag, Mark, Record
from upheld.verdicts import Anomaly

STEP_MS: Final = 250  # between two events that say no time of their own


class _Paced(Story):
    """A story in which each event comes a moment after the one before it."""

    now_ms = 0

    def strikes(self, fault: str) -> None:
        """Leave the mark of a fault."""
        self._tell(Mark(at_ms=0, fault=fault, evidence={}))

    def _tell(self, event: AnyEvent) -> None:
        if isinstance(event, Record):
            self.now_ms = event.seen_ms or self.now_ms + STEP_MS
            super()._tell(event._replace(seen_ms=self.now_ms))
        elif "at_ms" in type(event).model_fields:
            self.now_ms = int(getattr(event, "at_ms", 0)) or self.now_ms + STEP_MS
            super()._tell(event.model_copy(update={"at_ms": self.now_ms}))
        else:
            super()._tell(event)


class Told(NamedTuple):
    """A history, and the check that judges it."""

    story: Story
    check: str
    arguments: dict[str, Any]

    def anomaly(self, name: str) -> Anomaly:
        """Return the anomaly of this name that the check finds."""
        found = self.story.judged(self.check, **self.arguments)
        return next(anomaly for anomaly in found if anomaly.name == name)


Tell = Callable[[], Told]
TOLD: Final[dict[str, Tell]] = {}
CAPTIONS: Final[dict[str, str]] = {}


def _of(name: str, caption: str) -> Callable[[Tell], Tell]:
    """Register the story of an anomaly, with the sentences below its picture."""

    def register(tell: Tell) -> Tell:
        TOLD[name] = tell
        CAPTIONS[name] = caption
        return tell

    return register


def _two_entries(mode: str = "exactly_once") -> tuple[_Paced, Record, Record]:
    story = _Paced("ledger", mode)
    story.start()
    return story, story.entry(ada=100), story.entry(ada=5)


def _relay(numbers: str) -> _Paced:
    """Tell a relay of three inputs, and its outputs by their numbers; `x` is a kill."""
    story = _Paced("relay")
    story.start()
    inputs = [story.entry(ada=cents) for cents in range(3)]
    for number in numbers:
        if number == "x":
            story.kill()
            story.start()
        else:
            story.copy(inputs[int(number)])
    return story


@_of(
    "lost",
    "Three records come in. The instance dies after the first two, and the third never comes out.",
)
def _lost() -> Told:
    return Told(_relay("01x"), "relation", {})


@_of("duplicated", "The instance dies after two outputs. Its successor sends the second one again.")
def _duplicated() -> Told:
    return Told(_relay("01x12"), "relation", {})


@_of("reordered", "The outputs of one key come as 1, 3, 2, with no crash between.")
def _reordered() -> Told:
    return Told(_relay("021"), "relation", {})


@_of(
    "torn",
    "One entry moves 100 from bob to ada. The row of ada is there, and the row of bob is not.",
)
def _torn() -> Told:
    story = _Paced("ledger")
    story.start()
    entry = story.entry(ada=100, bob=-100)
    story.row("ada", 100, 1, entry)
    story.kill()
    return Told(story, "whole", {})


@_of("phantom", "Two entries give ada 100 and 105. A row says 999.")
def _phantom() -> Told:
    story, first, second = _two_entries()
    story.row("ada", 100, 1, first)
    story.row("ada", 999, 2, second)
    return Told(story, "relation", {})


@_of(
    "uncommitted-visible",
    "The transaction of the second entry was aborted upstream. A row counts it all the same.",
)
def _uncommitted() -> Told:
    story = _Paced("ledger")
    story.start()
    first = story.entry(ada=100)
    aborted = story.aborted(ada=5)
    story.row("ada", 100, 1, first)
    story.row("ada", 105, 2, aborted)
    return Told(story, "relation", {})


@_of(
    "resurrected",
    "A position is joined, then deleted. Its result is deleted too, and comes back after that.",
)
def _resurrected() -> Told:
    story = _Paced("holdings")
    story.start()
    position = story.left("p1", "A")
    ticker = story.right("A")
    story.joined(position, ticker)
    deleted = story.gone(position)
    story.tombstone(deleted)
    story.joined(position, ticker)
    return Told(story, "relation", {})


@_of(
    "stale-overwrite",
    "A ticker changes its name. The result with the new name comes, and then the older one.",
)
def _stale() -> Told:
    story = _Paced("holdings")
    story.start()
    position = story.left("p1", "A")
    before = story.right("A")
    after = story.right("A")
    story.joined(position, after)
    story.joined(position, before)
    return Told(story, "relation", {})


@_of(
    "early",
    "A batch goes out after 1 s, as it should. The next one goes 250 ms later, and is not full.",
)
def _early() -> Told:
    story = _Paced("batcher", threshold=3, interval_ms=1000)
    story.start()
    story.visits("ada", "ab", seen_ms=500)
    story.visits("ada", "cd", seen_ms=1_400)
    story.out("ada", "ab", 1_500)
    story.out("ada", "cd", 1_750)
    return Told(story, "bounded", {})


@_of(
    "late",
    "The input rests after two entries. The row of the second one is not visible 5 s later.",
)
def _late() -> Told:
    story, first, _ = _two_entries()
    story.row("ada", 100, 1, first)
    story.rests(looked_ms=5_000)
    story.now_ms += 5_000
    story.settled(1, down=False)
    return Told(story, "promptly", {})


@_of(
    "stuck",
    "The instance dies with a transaction open. Readers of committed records wait for 4.5 s.",
)
def _stuck() -> Told:
    story, first, _ = _two_entries()
    story.row("ada", 100, 1, first)
    story.kill()
    story.now_ms += 4_500
    story.settled(1, stable_ms=4_500)
    return Told(story, "released", {"bound_ms": 3_000})


@_of(
    "fenced-but-emitting",
    "Instance a is paused, and b takes over. Then a goes on, and adds one more row.",
)
def _fenced() -> Told:
    story = _Paced("ledger")
    story.start()
    entries = [story.entry(ada=cents) for cents in (1, 10, 100)]
    story.row("ada", 1, 1, entries[0])
    story.batch(0, 0, 7)
    story.paused_with_a_transaction_open((7, 0), stable=1)
    story.start("b")
    story.row("ada", 11, 2, entries[1])
    story.row("ada", 111, 3, entries[2])
    story.batch(1, 2, 8)
    story.ends(3)
    story.resume()
    story.row("ada", 11, 2, entries[1])
    story.batch(3, 3, 7)
    return Told(story, "silent", {})


@_of("leaked-topic", "After the run the broker has a topic that the design never declared.")
def _leaked() -> Told:
    story, first, second = _two_entries()
    story.names("app-entries", "app-balances")
    story.row("ada", 100, 1, first)
    story.row("ada", 105, 2, second)
    story.names("app-entries", "app-balances", "app-balances-repartition")
    return Told(story, "side-effects", {})


@_of(
    "ahead-of-commit",
    "The instance dies. Both rows are visible, and one of two entries is committed.",
)
def _ahead() -> Told:
    story, first, second = _two_entries()
    story.row("ada", 100, 1, first)
    story.row("ada", 105, 2, second)
    story.kill()
    story.settled(1)
    return Told(story, "fold", {})


@_of(
    "behind-commit",
    "The instance dies. Both entries are committed, and the second row is not visible.",
)
def _behind() -> Told:
    story, first, _ = _two_entries()
    story.row("ada", 100, 1, first)
    story.kill()
    story.settled(2)
    return Told(story, "fold", {})


@_of(
    "misstated",
    "Three events wait for longer than a second. The design says that it is not behind.",
)
def _misstated() -> Told:
    story = _Paced("batcher", threshold=3, interval_ms=1000)
    story.start()
    for number, visitor in enumerate("abc", 2):
        story.visits("ada", visitor, seen_ms=500 * number)
    place = f"{story.reads}-0"
    for at_ms, says, committed in ((1_200, 0, 0), (4_500, 0, 0), (6_500, 0, 3)):
        at: dict[str, Any] = {"committed": {place: committed}, "high_watermark": {place: 3}}
        story.history.add(Lag(at_ms=at_ms, application="app", name="a", offsets=says, **at))
    story.out("ada", "abc", 6_000)
    return Told(story, "lag", {})


@_of(
    "unbounded",
    "The store is away while entries arrive. The design holds 300 MiB more when it is back.",
)
def _unbounded() -> Told:
    story, first, second = _two_entries()
    story.has_in_memory(100)
    story.strikes("the store is down")
    story.now_ms += 2_000
    story.has_in_memory(400)
    story.row("ada", 100, 1, first)
    story.row("ada", 105, 2, second)
    return Told(story, "contained", {})
