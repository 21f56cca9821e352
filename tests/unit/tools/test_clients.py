"""The table of the clients is made of the reports and histories of their relays."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import clients
import pytest
from clients import DESIGNS, PAGE, ROOT, TABLES, Judged, judge, judged, table

from upheld import commands
from upheld.report import RowResult
from upheld.report.model import Summary
from upheld.verdicts import Anomaly, Verdict

LINK = "https://tracker.example/7"
SUMMARY = {
    "kind": "summary",
    "partial": False,
    "upheld": "0.1.0",
    "seed": 1234,
    "broker": "embedded",
    "broker_why": "asked for",
    "versions": {},
    "promised": {},
    "judged": {},
    "verdicts": {},
    "known_failures": 0,
    "untested": [],
    "seconds": 1,
    "median_seconds": 1,
    "peak_memory_mb": 1,
    "exit_code": 0,
}


def row(name: str, verdict: Verdict, known: str | None = None, design: str = "d") -> RowResult:
    """Return a row of a relay."""
    anomalies = [Anomaly(name="lost", text="x")] if verdict is Verdict.VIOLATED else []
    return RowResult(
        design=design,
        id=name,
        guarantee="G1",
        name="n",
        verdict=verdict,
        known=known,
        anomalies=anomalies,
        seconds=1,
    )


def test_each_client_has_its_verdicts_and_its_versions() -> None:
    """A newer version that it might use without the proxy stands in brackets."""
    rows = [row("G1.a", Verdict.UPHELD), row("G1.b", Verdict.VIOLATED)]
    found = {
        "one": Judged("1.2", rows, {"fetch": (18, 19), "produce": (13, 13)}, "2026-11-28", 1234),
        "other": Judged("3", why_not="not judged: no go"),
    }

    lines = table(found).splitlines()

    said = "1 violated, 1 upheld; G1.b is violated (lost)"
    assert f"| one | 1.2 | 2026-11-28 | 1234 | {said} |" in lines
    assert "| other | 3 | - | - | not judged: no go |" in lines
    assert "| API | one |" in lines
    assert "| `fetch` | 18 (up to 19) |" in lines
    assert "| `produce` | 13 |" in lines
    assert "| `end_txn` | - |" in lines


def test_a_known_failure_stands_with_its_reason_and_its_link() -> None:
    """A reader is told whose fault it is, and where that client tracks it."""
    known = row("G1.b", Verdict.VIOLATED, f"it drops a batch ({LINK})")

    lines = table({"one": Judged("1.2", [known], date="2026-11-28", seed=1)}).splitlines()

    said = f"G1.b is violated (lost), which is known: it drops a batch ({LINK})"
    assert f"| one | 1.2 | 2026-11-28 | 1 | 1 violated; {said} |" in lines
    assert not clients.is_bad(known)
    assert clients.is_bad(row("G1.b", Verdict.VIOLATED))
    assert clients.is_bad(row("G1.b", Verdict.UPHELD, "it drops a batch"))
    assert clients.is_bad(row("G1.b", Verdict.HARNESS_ERROR))
    assert not clients.is_bad(row("G1.b", Verdict.UPHELD))


def test_a_client_is_told_by_its_newest_report(tmp_path: Path) -> None:
    """The day and the seed are the report's, and a report that is cut is passed over."""
    for name, seed, day in (("old", 1, 1), ("new", 2, 2), ("cut", 3, 3)):
        report = tmp_path / name / "report.jsonl"
        report.parent.mkdir()
        judged_row = row("G1.a", Verdict.UPHELD, design="sarama").model_dump_json()
        summary = Summary.model_validate(SUMMARY | {"seed": seed}).model_dump_json()
        report.write_text(f"{judged_row}\n" + ("" if name == "cut" else f"{summary}\n"))
        at = datetime(2026, 11, day, 12, tzinfo=UTC).timestamp()
        os.utime(report, (at, at))

    found = judged("sarama", tmp_path)

    assert (found.date, found.seed) == ("2026-11-02", 2)
    assert [each.id for each in found.rows] == ["G1.a"]


def test_the_relays_are_judged_by_this_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another `upheld` on PATH would judge them by other rows."""
    asked = list[list[str]]()

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 5, stderr="nothing to judge\n")

    monkeypatch.setattr(subprocess, "run", run)

    assert judge(["examples/sarama"], tmp_path) == "nothing to judge"
    own = commands.own_module("upheld", "run")
    assert asked[0][: len(own)] == own


def test_the_page_has_a_line_for_each_client() -> None:
    """With its version, the day, the seed and what was found; and a line for each API."""
    written = TABLES.of(PAGE)
    lines = [line.strip("| ").split(" | ") for line in written.splitlines() if line.startswith("|")]
    heads = [line for line in lines if line[0] in {"client", "API"}]

    assert heads[0] == ["client", "version", "judged", "seed", "rows behind the proxy"]
    assert heads[1] == ["API", *DESIGNS]
    assert [line[0] for line in lines[2 : 2 + len(DESIGNS)]] == list(DESIGNS)
    assert [line[0].strip("`") for line in lines[-len(clients.APIS) :]] == list(clients.APIS)
    for line in lines[2 : 2 + len(DESIGNS)]:
        manifest = clients.load_manifest(str(ROOT / DESIGNS[line[0]]))
        assert line[1] == manifest.version
        assert datetime.strptime(line[2], "%Y-%m-%d")
        assert line[3].isdecimal()


def test_a_reader_of_the_readme_finds_the_page_and_the_examples() -> None:
    """The README links the page, and the examples say how to run one."""
    assert "(docs/clients.md)" in (ROOT / "README.md").read_text()
    said = (ROOT / "examples" / "README.md").read_text()
    assert "upheld run --design examples/" in said
    for design in DESIGNS.values():
        assert f"`{Path(design).name}/`" in said


def test_no_example_commits_what_is_built() -> None:
    """Neither a lock file of a registry, nor what `prepare` makes."""
    listed = subprocess.run(
        ["git", "ls-files", "examples"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    built = {"package-lock.json", "node_modules", "target", "packages", "relay", "uv.lock"}

    assert listed
    assert not [path for path in listed if built & set(Path(path).parts)]


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
    page.write_text(f"before\n{TABLES.begin}old\n{TABLES.end}after\n")
    monkeypatch.setattr(clients, "PAGE", page)

    clients.write("new\n")
    clients.write("newer\n")

    assert page.read_text() == f"before\n{TABLES.begin}\nnewer\n\n{TABLES.end}after\n"


def test_each_example_is_a_design() -> None:
    """The manifest of each has the client's version, and its name is the folder's."""
    for design in DESIGNS.values():
        manifest = clients.load_manifest(str(clients.ROOT / design))
        assert manifest.name == Path(design).name
        assert set(manifest.modes) == {"at_least_once", "exactly_once"}
        assert manifest.programs == ("relay",)


def test_the_apis_of_the_table_are_kafkas() -> None:
    """A name that no history has would make an empty line."""
    assert set(clients.APIS) <= set(clients.KNOWN_APIS)
