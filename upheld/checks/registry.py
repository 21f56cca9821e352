"""The checks by their names.

Each declares the anomalies that it can find, and what it must have seen.
"""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from functools import partial, wraps
from typing import Any, Final, TypeVar

from upheld.checks.needs import Need, Struck, lacking
from upheld.checks.view import undecided, view_of
from upheld.history import History
from upheld.history.outputs import by_output, output_of
from upheld.verdicts import Anomaly, Inconclusive, NotOffered

Check = Callable[..., list[Anomaly]]  # (history, application name, the claim's own arguments)
C = TypeVar("C", bound=Check)

# The anomalies of a value that no fold of the input gives.
NO_STATE: Final = ("phantom", "torn", "uncommitted-visible", "duplicated", "lost")
# The anomalies of outputs that the model relates to the input one by one.
RELATION: Final = (
    "lost",
    "duplicated",
    "reordered",
    "stale-overwrite",
    "resurrected",
    "torn",
    "uncommitted-visible",
    "phantom",
)

# The needs of a check that compares outputs with the model of the input.
OUTPUTS: Final = frozenset({Need.INPUT, Need.START, Need.MARK})

# The checks of answers, which are compared with one visible output, and with no oracle.
OF_QUERIES: Final = frozenset({"answers", "committed-answers", "answered", "online"})

# The checks of the application as a whole, which each output that can be judged shows.
OF_ANY_OUTPUT: Final = frozenset({"owners", *OF_QUERIES})

CHECKS: Final[dict[str, Check]] = {}
ANOMALIES: Final[dict[str, tuple[str, ...]]] = {}  # of each check, for `explain` and the lint
NEEDS: Final[dict[str, frozenset[Need]]] = {}  # of each check
BY_LAST_VALUE: Final = set[str]()  # the checks that may know of a key the last value alone


def check(
    name: str, *, anomalies: tuple[str, ...], needs: Set[Need], by_last_value: bool = False
) -> Callable[[C], C]:
    """Register a check under the name that histories have it by.

    Args:
        name: The claim's check in a history. It never changes.
        anomalies: The names of all anomalies that the check can return.
        needs: What the check must have seen. Without it the claim is inconclusive.
        by_last_value: Whether it needs no more of a key's outputs than the last one. It compares
            that with the last state, or compares other facts, and of outputs asks alone that each
            key is one of the input's.

    A check that compares outputs with the input is asked once for each output of an application.
    It is not offered where it compares them one by one, and only the last value of a key is known.
    It is inconclusive if it finds nothing, and nothing is known of a key.
    """

    def register(function: C) -> C:
        if name in CHECKS:
            raise ValueError(f"two checks are called {name!r}")
        compares = Need.INPUT in needs
        compares_each = compares and not by_last_value

        def of_output(history: History, application: str, **claimed: Any) -> list[Anomaly]:
            if compares_each and view_of(history, application).program.is_last_alone:
                raise NotOffered(
                    "without a fault its keys have different numbers of outputs, so that only the "
                    "last value of each is compared"
                )
            found = function(history, application, **claimed)
            unknown = undecided(view_of(history, application)) if compares and not found else []
            if unknown:
                raise Inconclusive(unknown[0])
            return found

        @wraps(function)
        def judged(history: History, application: str, **claimed: Any) -> list[Anomaly]:
            histories = by_output(history, application) if compares else (history,)
            if len(histories) == 1:
                return of_output(history, application, **claimed)
            is_any_enough = name in OF_ANY_OUTPUT
            return _of_all(histories, application, partial(of_output, **claimed), is_any_enough)

        CHECKS[name] = judged
        ANOMALIES[name] = anomalies
        NEEDS[name] = frozenset(needs)
        if by_last_value:
            BY_LAST_VALUE.add(name)
        return function

    return register


def _of_all(
    histories: Sequence[History], application: str, judged: Check, is_any_enough: bool
) -> list[Anomaly]:
    """Return the anomalies of all outputs, each of which says its output.

    An anomaly that every output shows alike is one of the application, and is returned once. An
    anomaly of one output counts, whether or not another output can be judged.

    Raises:
        NotOffered: No anomaly was found, and an output cannot be judged.
        Inconclusive: The same, and nothing is proved of an output.
    """
    found: dict[str, list[Anomaly]] = {}
    unproved = list[NotOffered | Inconclusive]()
    for history in histories:
        output = output_of(history, application)
        try:
            found[output] = judged(history, application)
        except (NotOffered, Inconclusive) as reason:
            unproved.append(type(reason)(f"of the output {output}: {reason}"))
    is_enough = is_any_enough and bool(found)
    if unproved and not any(found.values()) and not is_enough:
        raise next((each for each in unproved if isinstance(each, Inconclusive)), unproved[0])
    outputs = Counter(each for anomalies in found.values() for each in dict.fromkeys(anomalies))
    of_the_application = [each for each, count in outputs.items() if count == len(histories)]
    return of_the_application + [
        each.model_copy(update={"text": f"output {output}: {each.text}"})
        for output, anomalies in found.items()
        for each in anomalies
        if each not in of_the_application
    ]


def demand(name: str, history: History, application: str, struck: Struck) -> None:
    """Demand that a history holds what a check must have seen.

    Args:
        name: The check.
        history: The history as it was when the claim was made.
        application: The application that the claim is about.
        struck: Of each fault that the scenario made by then, the families that its mark may have.

    Raises:
        Inconclusive: Something is lacking; the text names it.
    """
    if missing := list(lacking(NEEDS[name], history, application, struck)):
        raise Inconclusive(f"before the claim {name!r} the history lacks {' and '.join(missing)}")
