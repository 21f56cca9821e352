"""Outputs outside of any transaction, on hand-written histories."""

from histories import Story
from stories import balances

from upheld.checks.outside import outside


def written(mode: str, *, transactional: bool) -> Story:
    """Tell a ledger whose first output is in a transaction, and its second one maybe."""
    story = balances(mode, "01")
    story.batch(0, 0, 7)
    story.batch(1, 1, 8, transactional=transactional)
    story.batch(2, 2, 7, control="commit")
    return story


def test_it_is_visible_at_once() -> None:
    """The first such batch is named with its record, under exactly_once."""
    (anomaly,) = outside(written("exactly_once", transactional=False).history, "app")

    assert (anomaly.name, anomaly.key, anomaly.got) == (
        "uncommitted-visible",
        "ada",
        "app-balances-0@1",
    )
    assert anomaly.text.startswith("app-balances-0@1..1 was written outside of any transaction")


def test_it_is_right() -> None:
    """A transaction holds each output; under at_least_once there need not be one."""
    assert outside(written("exactly_once", transactional=True).history, "app") == []
    assert outside(written("at_least_once", transactional=False).history, "app") == []
