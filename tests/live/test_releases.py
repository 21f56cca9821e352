"""Two releases of an application without an adapter are judged together."""

from pathlib import Path

import pytest
from deployments import APPLICATIONS, judged_by, varied

from upheld.brokers import Broker
from upheld.judging.rejudge import judge
from upheld.report import RowResult
from upheld.verdicts import Verdict

TOTALS = APPLICATIONS / "totals"
RELEASED = "totals G81.stopped-and-started[ledger-exactly_once]"
DIES = "totals G22.dies-after-a-commit[ledger-exactly_once]"
BEGINS_ANEW = {"totals = restored()": "totals: dict[bytes, int] = {}"}
DEARER = {'* order["price_cents"]': '* order["price_cents"] * 119 // 100'}


@pytest.mark.parametrize(
    ("changes", "anomalies"),
    [({}, set()), (BEGINS_ANEW, {"lost"})],
    ids=["goes on", "begins anew"],
)
def test_a_release_goes_on_from_what_the_last_one_left(
    broker: Broker, tmp_path: Path, changes: dict[str, str], anomalies: set[str]
) -> None:
    """Totals that begin anew are lost."""
    found = released(broker, tmp_path, changes, RELEASED)

    hold(found, anomalies, tmp_path)
    assert found.oracle == "itself"


@pytest.mark.parametrize(
    ("changes", "anomalies"),
    [({}, set()), (DEARER, {"behind-commit"})],
    ids=["the same", "another price"],
)
def test_the_last_release_says_what_is_right(
    broker: Broker, tmp_path: Path, changes: dict[str, str], anomalies: set[str]
) -> None:
    """A change of logic is found, through a kill."""
    found = released(broker, tmp_path, changes, DIES, "--oracle", "previous")

    hold(found, anomalies, tmp_path)
    assert found.oracle == "previous"
    assert found.kills == 1


def released(
    broker: Broker, folder: Path, changes: dict[str, str], row: str, *options: str
) -> RowResult:
    """Judge a release that differs from the one before it by texts of its program."""
    earlier = varied(TOTALS, folder / "earlier", {})
    later = varied(TOTALS, folder / "later", changes)
    named = ["--from", str(earlier), "--to", str(later), *options]
    return judged_by(broker, folder / "out", named, row)


def hold(found: RowResult, anomalies: set[str], folder: Path) -> None:
    """Check the anomalies of a verdict, and that its history judges alike."""
    assert found.verdict is (Verdict.VIOLATED if anomalies else Verdict.UPHELD), found.reason
    assert set(found.totals) == anomalies
    assert judge(folder / "out" / found.history).verdict == found.verdict
