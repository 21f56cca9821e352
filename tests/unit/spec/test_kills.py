from pathlib import Path

import pytest

from upheld.checks import ANOMALIES, CHECKS
from upheld.errors import UsageProblem
from upheld.protocol.manifest import load, shipped
from upheld.spec import catalogue, kills, selection
from upheld.spec.kills import Judged, Kill, Kills

KILL = Kill(anomaly="lost", check="relation", seconds=1.5)


def test_a_matrix_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """Designs and rows are sorted.

    So a matrix made again differs only where a result does.
    """
    file = tmp_path / "kills.json"
    first = Kills(
        designs={"b": Judged(killed={"G2.x": KILL, "G1.y": KILL}), "a": Judged(upheld={"G3.z": 1})}
    )

    kills.save(first, file)
    again = kills.load(file)
    kills.save(again, file)

    assert again == first
    assert list(again.designs) == ["a", "b"]
    assert list(again.of("b")) == ["G1.y", "G2.x"]
    assert again.of("nobody") == {}


def test_what_is_seen_again_is_counted() -> None:
    """The same end twice counts as two.

    A row that proved nothing neither adds nor takes away, and may be proven later.
    """
    judged = Judged()

    for verdict in ("inconclusive", "violated", "violated", "harness-error"):
        judged.add("G1.y", verdict, KILL)
        judged.add("G1.z", "upheld" if verdict == "violated" else verdict, KILL)

    assert judged == Judged(
        killed={"G1.y": KILL.model_copy(update={"times": 2})}, upheld={"G1.z": 2}
    )


@pytest.mark.parametrize(
    "then", [("upheld", KILL), ("violated", KILL.model_copy(update={"anomaly": "torn"}))]
)
def test_what_ends_now_so_and_now_otherwise_is_unsteady(then: tuple[str, Kill]) -> None:
    """A row that catches by chance catches nobody, whatever it comes to later."""
    judged = Judged()

    for verdict, kill in (("violated", KILL), then, ("violated", KILL)):
        judged.add("G1.y", verdict, kill)

    assert judged == Judged(unproven={"G1.y": "unsteady"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no kill matrix"),
        (b'{"format": 1, "designs": {"a": {"killed": []}}}', "is no kill matrix: designs.a.killed"),
        (b'{"format": 2}', "has format 2; this version reads 1 at most"),
        (b"\xff", "is no kill matrix"),
        (b"[" * 100_000, "is no kill matrix"),
    ],
)
def test_a_damaged_matrix_is_one_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    """The sentence says what is wrong, whatever the file holds."""
    file = tmp_path / "kills.json"
    file.write_bytes(content)

    with pytest.raises(UsageProblem, match=said):
        kills.load(file)


def test_a_missing_matrix_is_one_sentence(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(UsageProblem, match=r"kills\.json cannot be read: No such file"):
        kills.load(tmp_path / "kills.json")


def test_what_is_shipped_speaks_of_what_there_is() -> None:
    """Every design, row, anomaly and check that the shipped matrix names exists."""
    matrix = kills.load()
    rows = {row.id for row in selection.rows(catalogue.load())}
    anomalies = {name for names in ANOMALIES.values() for name in names} | {"stuck"}

    assert set(matrix.designs) <= set(shipped())
    assert {row for judged in matrix.designs.values() for row in judged.rows()} <= rows
    for judged in matrix.designs.values():
        assert {kill.anomaly for kill in judged.killed.values()} <= anomalies
        assert {kill.check for kill in judged.killed.values()} <= {"", *CHECKS}


def test_no_control_is_a_row_that_catches() -> None:
    """A wrong design passes its control, says the matrix too."""
    matrix = kills.load()

    for name in matrix.designs:
        sin = load(name).sin
        assert sin
        assert sin.control not in matrix.of(name)
