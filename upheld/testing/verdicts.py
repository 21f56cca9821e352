"""The end of a test, as the verdict on its row says."""

import pytest

from upheld.report import card
from upheld.testing.judge import Finding
from upheld.verdicts import Verdict


def demand_judged(found: Finding) -> None:
    """Refuse a row that could not be judged: nothing is known of the design.

    Raises:
        pytest.fail.Exception: The harness, the adapter or the machine failed; the text is the card.
    """
    if found.result.verdict is Verdict.HARNESS_ERROR:
        pytest.fail(text_of(found), pytrace=False)


def demand_upheld(found: Finding) -> None:
    """End a test unless its row is upheld.

    Raises:
        pytest.fail.Exception: It is violated, or nothing is proved; the text is the card. Or a
            known failure is upheld.
        pytest.skip.Exception: The row is unsupported.
        pytest.xfail.Exception: It is a known failure.
    """
    result = found.result
    if result.verdict is Verdict.UNSUPPORTED:
        raise pytest.skip.Exception(f"unsupported: {result.reason}", _use_item_location=True)
    if result.is_accepted:
        pytest.xfail(f"known failure: {result.known}")
    if result.has_card:
        pytest.fail(text_of(found), pytrace=False)
    if result.fails:
        pytest.fail(
            f"{result.id}: the known failure {result.known} is upheld: take it off the list",
            pytrace=False,
        )


def text_of(found: Finding) -> str:
    """Return the card of a row, and the folder in which its files are."""
    return f"{card(found.result, found.result.again)}\n  report    {found.folder}"
