"""An executable specification of Kafka stream processors, and its judge.

In pytest, `upheld.design` names a design, and its decorator makes a test of each row of it:

    >>> orders = design("/srv/orders/design.toml", options=("--broker", "embedded"))
    >>> @orders.guarantees("G22", "G24", depth="core")
    ... def test_orders() -> None:
    ...     pass
    >>> [mark.name for mark in test_orders.pytestmark]
    ['usefixtures', 'upheld']
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upheld.testing.designs import Design

__version__ = "0.1.0"


def design(path: str | os.PathLike[str], *, options: Sequence[str] = ()) -> "Design":
    """Return a design, to judge its rows from tests of pytest.

    Nothing is read before pytest collects a test of it.

    Args:
        path: Its design.toml, or the folder that has one; absolute, or from the folder of the
            calling file.
        options: Options of `upheld run`, such as `("--broker", "embedded")`.
    """
    from upheld.testing.designs import Design

    caller = Path(sys._getframe(1).f_globals.get("__file__", ""))
    return Design(caller.parent.joinpath(path).resolve(), tuple(options))
