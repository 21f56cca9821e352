"""A misspelt name is answered with the name that it resembles."""

import pytest

from upheld.guesses import did_you_mean


@pytest.mark.parametrize(
    ("name", "guess"),
    [("ledgr", " Did you mean ledger?"), ("leder", " Did you mean ledger?"), ("zzz", ""), ("", "")],
)
def test_the_nearest_name_is_asked_for(name: str, guess: str) -> None:
    """A name that resembles nothing is answered with nothing."""
    assert did_you_mean(name, ["relay", "ledger"]) == guess
