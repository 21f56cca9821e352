"""The end of a run says which timeouts the proxy has shortened."""

from upheld.history.marks import Happening
from upheld.report import RowResult
from upheld.report.reasons import shortened
from upheld.verdicts import Verdict


def row(design: str, *happenings: Happening) -> RowResult:
    """Return the result of a row with these marks."""
    return RowResult(
        design=design,
        id="G22.dies[relay-exactly_once]",
        guarantee="G22",
        name="it dies",
        verdict=Verdict.UPHELD,
        seconds=1,
        marks=[{"happening": each, "fault": f"this is {each}"} for each in happenings],
    )


def test_each_timeout_is_named_once() -> None:
    """Rows of one design say the same, and other marks are no matter."""
    shorter = Happening.TIMEOUT_SHORTENED
    rows = [row("fees", shorter), row("fees", shorter, Happening.SESSION_SET), row("tax", shorter)]

    assert list(shortened(rows)) == [
        "fees, tax: this is timeout-shortened; --timeouts deployed leaves it"
    ]
    assert list(shortened([row("fees", Happening.SESSION_SET)])) == []
