"""Models of your own application, as pure functions of its input.

A model stands in a file of its own beside `design.toml`, which names it: `oracle =
"orders.py:ORDERS"`. It says what the application is to do. Write it from what was promised: a copy
of the application's code has the same faults.

A `Map` gives outputs for each record by itself:

    >>> def cost(order: Record) -> list[Output]:
    ...     cents = order.value["quantity"] * order.value["price_cents"]
    ...     return [Output(order.key, {"order": order.value["id"], "cost_cents": cents})]
    >>> ORDERS = Map(cost)
    >>> ORDERS.step(Record("alice", {"id": "order-1", "quantity": 2, "price_cents": 450}))
    [Output(key='alice', value={'order': 'order-1', 'cost_cents': 900})]

A `Fold` has a state for each key, too, which every record of the key takes one step further:

    >>> def count(number: int, order: Record) -> tuple[int, list[Output]]:
    ...     return number + 1, [Output(order.key, {"orders": number + 1})]
    >>> TOTALS = Fold(count, initial=0)
    >>> TOTALS.step(1, Record("alice", {"id": "order-2"}))
    (2, [Output(key='alice', value={'orders': 2})])

A step is called twice for each record, and both answers have to be alike. It changes nothing that
it is given: a new state is a new object.

    >>> def remember(seen: list[str], order: Record) -> tuple[list[str], list[Output]]:
    ...     return [*seen, order.value["id"]], []
    >>> remember(["order-1"], Record("alice", {"id": "order-2"}))
    (['order-1', 'order-2'], [])
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the input.

    Attributes:
        key: Its key as text; None if it has none.
        value: Its value: what JSON says, or bytes if the input has that format. None is a
            tombstone.
        timestamp_ms: Its timestamp.
        headers: Its headers, in order.
        partition: The partition in which it lies.
        offset: Its offset there.
    """

    key: str | None
    value: Any
    timestamp_ms: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    """One record of the output.

    Attributes:
        key: Its key; None if it has none.
        value: Its value: what JSON can say, or bytes if the output has that format. None is a
            tombstone.
    """

    key: str | None
    value: Any


@dataclass(frozen=True)
class Map:
    """A model in which the outputs of a record depend on this record alone.

    Attributes:
        step: Returns the outputs of a record, in order. There may be none.
    """

    step: Callable[[Record], Iterable[Output]]

    def __post_init__(self) -> None:
        """Refuse a step that is no function."""
        _demand_callable(self, step=self.step)


def key_of(record: Record) -> str | None:
    """Return the key of a record, by which a fold has its states."""
    return record.key


@dataclass(frozen=True)
class Fold(Generic[S]):
    """A model with a state for each key.

    All records of a state's key lie in one partition of the input. A state is what JSON can say:
    numbers, texts, lists and tables.

    Attributes:
        step: Returns the next state and the outputs of a record, in order. There may be none.
        initial: The state before the first record.
        key: Returns the key of the state that a record belongs to.
        may_skip: Whether the application may leave out outputs that a later one of the same key
            replaces, as a cache before a compacted topic does.
    """

    step: Callable[[S, Record], tuple[S, Iterable[Output]]]
    initial: S
    key: Callable[[Record], str | None] = key_of
    may_skip: bool = False

    def __post_init__(self) -> None:
        """Refuse a step or a key that is no function."""
        _demand_callable(self, step=self.step, key=self.key)


Model = Map | Fold[Any]


def _demand_callable(model: object, **functions: object) -> None:
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(
                f"`{name}` of a {type(model).__name__} is {function!r:.100}, and no function"
            )
