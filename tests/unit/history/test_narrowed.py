"""A verdict says where the proxy made clients use older versions."""

from upheld.history import History
from upheld.history.events import Negotiated
from upheld.history.narrowed import narrowed
from upheld.report import RowResult, card, versions
from upheld.verdicts import Verdict


def of(through: dict[str, int], without: dict[str, int], **more: dict[str, int]) -> Negotiated:
    """Return the versions of the instance a."""
    return Negotiated(
        at_ms=9, application="app", name="a", through=through, without=without, **more
    )


def test_where_nothing_was_narrowed_nothing_is_said() -> None:
    """The proxy can read all that the harness's own broker offers."""
    same = {"fetch": 18, "produce": 13}

    assert narrowed(History([of(same, same)])) == []
    assert narrowed(History([])) == []
    assert versions(row()) == ""


def test_each_api_that_was_narrowed_is_named_once() -> None:
    """Two instances have the same clients."""
    event = of({"fetch": 18, "produce": 13}, {"fetch": 19, "produce": 13}, hidden={"API 99": 2})

    assert narrowed(History([event, event.model_copy(update={"name": "b"})])) == [
        "fetch v18 instead of up to v19",
        "no API 99 instead of up to v2",
    ]


def test_a_card_names_them() -> None:
    """A design is not blamed without a word of what the harness changed."""
    found = card(row("fetch v18 instead of up to v19"), "again")

    assert "  versions  through the proxy fetch v18 instead of up to v19\n" in found


def row(*said: str) -> RowResult:
    """Return a violated row whose clients used these versions."""
    return RowResult(
        design="d",
        id="G1.x",
        guarantee="G1",
        name="n",
        verdict=Verdict.VIOLATED,
        narrowed=list(said),
        seconds=1,
    )
