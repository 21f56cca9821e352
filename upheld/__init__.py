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
    from types import FrameType

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

    return Design(_from(sys._getframe(1), path), tuple(options))


def scenarios(*paths: str | os.PathLike[str], design: "str | Design" = "design.toml") -> None:
    """Judge scenarios of your own, in the sentences of upheld: a test each row.

    The calling module gets a test that is named after the first path.

    Args:
        paths: Folders of features, or files; absolute, or from the folder of the calling file. The
            folder `features` if there are none.
        design: What is judged: what `upheld.design` returned, or its path.
    """
    from upheld.testing.designs import Asked, Design, of_features

    caller = sys._getframe(1)
    judged = design if isinstance(design, Design) else Design(_from(caller, design))
    places = tuple(_from(caller, path) for path in paths or ("features",))
    of_features(Asked(judged, (), features=places), caller)


def _from(caller: "FrameType", path: str | os.PathLike[str]) -> Path:
    """Return a path, which is relative to the folder of the calling file."""
    return Path(caller.f_globals.get("__file__", "")).parent.joinpath(path).resolve()
