"""The table of the clients is made of the reports and histories of their relays."""

from pathlib import Path

import clients
import pytest
from clients import DESIGNS, Judged, judged, table

from upheld.report import RowResult
from upheld.verdicts import Anomaly, Verdict


def row(name: str, verdict: Verdict) -> RowResult:
    """Return a row of a relay."""
    anomalies = [Anomaly(name="lost", text="x")] if verdict is Verdict.VIOLATED else []
    return RowResult(
        design="d",
        id=name,
        guarantee="G1",
        name="n",
        verdict=verdict,
        anomalies=anomalies,
        seconds=1,
    )


def test_each_client_has_its_verdicts_and_its_versions() -> None:
    """A newer version that it might use without the proxy stands in brackets."""
    rows = [row("G1.a", Verdict.UPHELD), row("G1.b", Verdict.VIOLATED)]
    found = {
        "one": Judged("1.2", rows, {"fetch": (18, 19), "produce": (13, 13)}),
        "other": Judged("3", why_not="not judged: no go"),
    }

    lines = table(found).splitlines()

    assert "| one | 1.2 | 1 violated, 1 upheld; G1.b is violated (lost) |" in lines
    assert "| other | 3 | not judged: no go |" in lines
    assert "| API | one |" in lines
    assert "| `fetch` | 18 (up to 19) |" in lines
    assert "| `produce` | 13 |" in lines
    assert "| `end_txn` | - |" in lines


def test_a_client_without_a_report_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not judged yet, or this machine cannot build it."""
    monkeypatch.setitem(clients.DESIGNS, "franz-go", str(tmp_path))
    manifest = clients.ROOT / "examples" / "aiokafka" / "design.toml"
    (tmp_path / "design.toml").write_text(manifest.read_text())
    (tmp_path / "relay.py").touch()
    assert judged("franz-go", tmp_path).why_not == "not judged yet"

    (tmp_path / "design.toml").write_text(manifest.read_text().replace("{python}", "no-go"))
    why_not = judged("franz-go", tmp_path).why_not
    assert why_not == "not judged: `command` starts with no-go, which cannot be run here."


def test_the_tables_stand_between_the_marks_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All around them stays."""
    page = tmp_path / "clients.md"
    page.write_text(f"before\n{clients.BEGIN}old\n{clients.END}after\n")
    monkeypatch.setattr(clients, "PAGE", page)

    clients.write("new\n")
    clients.write("newer\n")

    assert page.read_text() == f"before\n{clients.BEGIN}\nnewer\n\n{clients.END}after\n"


def test_each_example_is_a_design() -> None:
    """The manifest of each has the client's version, and its name is the folder's."""
    for design in DESIGNS.values():
        if design != "plain":
            manifest = clients.load_manifest(str(clients.ROOT / design))
            assert manifest.name == Path(design).name
            assert set(manifest.modes) == {"at_least_once", "exactly_once"}
            assert manifest.programs == ("relay",)


def test_the_apis_of_the_table_are_kafkas() -> None:
    """A name that no history has would make an empty line."""
    assert set(clients.APIS) <= set(clients.KNOWN_APIS)
