"""The power of a row is how many wrong designs it catches with an oracle."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from upheld.spec import kills, power
from upheld.spec.kills import Judged, Kill, Kills
from upheld.spec.power import Power

RELAY = "G1.a[relay-exactly_once]"
LEDGER = "G1.a[ledger-exactly_once]"
OTHER = "G2.b[relay-exactly_once]"
KILL = Kill(anomaly="lost", seconds=1)


def matrix(**designs: Judged) -> Kills:
    """Return a matrix of these designs."""
    return Kills(designs=designs)


@pytest.fixture(autouse=True)
def _measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let three wrong designs be judged by models, and two of their kills by themselves."""
    by_model = matrix(
        one=Judged(killed={RELAY: KILL, OTHER: KILL}),
        two=Judged(killed={RELAY: KILL}, upheld={OTHER: 1}),
        three=Judged(killed={LEDGER: KILL}, upheld={RELAY: 1}),
    )
    by_itself = matrix(
        one=Judged(killed={RELAY: KILL}),
        two=Judged(upheld={RELAY: 1}),
    )
    monkeypatch.setattr(kills, "FILE", tmp_path / "kills.json")
    by_last_value = matrix(one=Judged(upheld={RELAY: 1}), two=Judged(upheld={RELAY: 1}))
    monkeypatch.setattr(power, "BY_ITSELF", tmp_path / "kills_by_itself.json")
    monkeypatch.setattr(power, "BY_LAST_VALUE", tmp_path / "kills_by_last_value.json")
    kills.save(by_model, kills.FILE)
    kills.save(by_last_value, power.BY_LAST_VALUE)
    kills.save(by_itself, power.BY_ITSELF)
    power._matrix.cache_clear()
    yield
    power._matrix.cache_clear()


@pytest.mark.parametrize(
    ("row", "oracle", "expected"),
    [
        (RELAY, "program", Power(caught=2, judged=3)),
        (RELAY, "orders.py:ORDERS", Power(caught=2, judged=3)),
        (RELAY, "itself", Power(caught=1, judged=3)),
        (RELAY, "previous", Power(caught=1, judged=3)),
        (OTHER, "model", Power(caught=1, judged=2)),
        (OTHER, "itself", None),
        ("G3.new[relay-exactly_once]", "model", None),
    ],
)
def test_a_row_with_an_oracle(row: str, oracle: str, expected: Power | None) -> None:
    """The power is unknown where nothing was judged."""
    assert power.power(row, oracle) == expected


def test_a_row_that_compares_last_values_alone() -> None:
    """It catches fewer of the same wrong designs."""
    assert power.power(RELAY, "itself", by_last_value=True) == Power(caught=0, judged=3)


def test_rows_together_catch_what_one_of_them_catches() -> None:
    """The wrong designs of other programs do not count."""
    rows = [RELAY, OTHER]

    assert power.power_together(rows, "model", ["relay"]) == Power(caught=2, judged=2)
    assert power.power_together(rows, "itself", ["relay"]) == Power(caught=1, judged=2)
    assert power.power_together(rows, "model", ["relay", "ledger"]) == Power(caught=2, judged=3)


@pytest.mark.parametrize("oracle", ["itself", "last_value"])
def test_the_shipped_matrices_fit(oracle: str) -> None:
    """The rows of a run without a fault are rows in which a model catches the design."""
    data = Path(kills.__file__).parents[1] / "data"
    by_model = kills.load(data / "kills.json").designs

    for name, judged in kills.load(data / f"kills_by_{oracle}.json").designs.items():
        assert judged.rows() <= by_model[name].killed.keys()
