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

A model of several outputs names them, and each output says `to` which one it belongs:

    >>> def priced(order: Record) -> Iterable[Output]:
    ...     cents = order.value["quantity"] * order.value["price_cents"]
    ...     yield Output(order.key, {"cost_cents": cents}, to="costs")
    ...     if cents >= 1_400:
    ...         yield Output(order.key, {"large": order.value["id"]}, to="alerts")
    >>> ALERTS = Map(priced, outputs=("costs", "alerts"))
    >>> for output in ALERTS.step(Record("bob", {"id": "o-7", "quantity": 2, "price_cents": 700})):
    ...     output
    Output(key='bob', value={'cost_cents': 1400}, to='costs')
    Output(key='bob', value={'large': 'o-7'}, to='alerts')

A model of several inputs names them, too, and a record says which `input` it lies in:

    >>> def balance(cents: int, record: Record) -> tuple[int, list[Output]]:
    ...     cents += record.value["cents"] if record.input == "orders" else -record.value["cents"]
    ...     return cents, [Output(record.key, {"balance_cents": cents})]
    >>> BALANCES = Fold(balance, initial=0, inputs=("orders", "refunds"))
    >>> BALANCES.step(500, Record("alice", {"cents": 200}, input="refunds"))
    (300, [Output(key='alice', value={'balance_cents': 300})])

Nothing orders records of two partitions. So an application may read them in any order that keeps
the order of each partition. The outputs are right if some such order gives them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
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
        input: The name of the input in `design.toml`.
    """

    key: str | None
    value: Any
    timestamp_ms: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int = 0
    offset: int = 0
    input: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """One record of the output.

    Attributes:
        key: Its key; None if it has none.
        value: Its value: what JSON can say, or bytes if the output has that format. None is a
            tombstone.
        to: The name of the output in `design.toml`. A model of one output leaves it out.
    """

    key: str | None
    value: Any
    to: str | None = None

    def __repr__(self) -> str:
        """Leave `to` out where an output does not say it."""
        to = "" if self.to is None else f", to={self.to!r}"
        return f"Output(key={self.key!r}, value={self.value!r}{to})"


@dataclass(frozen=True)
class Map:
    """A model in which the outputs of a record depend on this record alone.

    Attributes:
        step: Returns the outputs of a record, in order. There may be none.
        inputs: The names of its inputs in `design.toml`, if there are several.
        outputs: The names of its outputs there, if there are several.
    """

    step: Callable[[Record], Iterable[Output]]
    inputs: tuple[str, ...] = field(default=(), kw_only=True)
    outputs: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        """Refuse a step that is no function, and names that are no names."""
        _demand_callable(self, step=self.step)
        _demand_names(self, inputs=self.inputs, outputs=self.outputs)


def key_of(record: Record) -> str | None:
    """Return the key of a record, by which a fold has its states."""
    return record.key


@dataclass(frozen=True)
class Fold(Generic[S]):
    """A model with a state for each key.

    If there is one input, all records of a state's key lie in one partition of it. A state is what
    JSON can say: numbers, texts, lists and tables.

    Attributes:
        step: Returns the next state and the outputs of a record, in order. There may be none.
        initial: The state before the first record.
        key: Returns the key of the state that a record belongs to.
        may_skip: Whether the application may leave out outputs that a later one of the same key
            replaces, as a cache before a compacted topic does.
        inputs: The names of its inputs in `design.toml`, if there are several.
        outputs: The names of its outputs there, if there are several.
    """

    step: Callable[[S, Record], tuple[S, Iterable[Output]]]
    initial: S
    key: Callable[[Record], str | None] = key_of
    may_skip: bool = False
    inputs: tuple[str, ...] = field(default=(), kw_only=True)
    outputs: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        """Refuse a step or a key that is no function, and names that are no names."""
        _demand_callable(self, step=self.step, key=self.key)
        _demand_names(self, inputs=self.inputs, outputs=self.outputs)


Model = Map | Fold[Any]


def _demand_callable(model: object, **functions: object) -> None:
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(
                f"`{name}` of a {type(model).__name__} is {function!r:.100}, and no function"
            )


def _demand_names(model: object, **given: Any) -> None:
    for field_name, names in given.items():
        is_list = isinstance(names, tuple | list)
        if not is_list or not all(isinstance(name, str) for name in names):
            kind = type(model).__name__
            raise TypeError(f"`{field_name}` of a {kind} is {names!r:.100}, and no list of names")
        if len(set(names)) < len(names):
            raise TypeError(
                f"`{field_name}` of a {type(model).__name__} has a name twice: {names!r:.100}"
            )
