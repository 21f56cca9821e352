"""Measure which row catches which wrong design, and write the kill matrix.

    python tools/kills.py --durations REPORT.jsonl --scratch FOLDER [--lanes 3] [--max-minutes 60]

Each wrong design is judged on every row of its programs that takes less than --under seconds on
`plain`. Rows that its design.toml names are left out. Known pairs are not judged again, so an
interrupted run goes on where it stopped. `--take REPORT.jsonl…` adds the results of other runs of
wrong designs.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import upheld
from upheld import commands
from upheld.protocol.manifest import Manifest, load, shipped
from upheld.reading import read_unpacked
from upheld.spec import catalogue, kills
from upheld.spec.selection import promised
from upheld.verdicts import Reason

UNKNOWN_S = 60.0  # of a row that the report lacks
# Rows, or one design: more of them share the start of the brokers, fewer lose less where a run is
# ended.
A_RUN = 400
# Then a run is ended: what is left waits for designs that are stuck, and would be looked at one by
# one.
A_RUN_S = 420.0
# So many rows of each design first, its cheapest: what is ended early knows a little of all.
PASSES = (
    8,
    24,
    None,
)


def seconds_of(report: Path) -> dict[str, float]:
    """Return the seconds that each row of a report took."""
    return {line["id"]: line["seconds"] for line in lines_of(report)}


def lines_of(report: Path) -> list[dict[str, object]]:
    """Return the rows of a report, which may be cut.

    A row that this machine lacks something for says nothing of its design, and is left out.
    """
    if not report.exists():
        return []
    whole = report.read_text(encoding="utf-8").rpartition("\n")[0].split("\n")
    return [
        line
        for line in map(json.loads, filter(None, whole))
        if line["kind"] == "row" and line["code"] != Reason.MACHINE_LACKS
    ]


def take(matrix: kills.Kills, report: Path) -> int:
    """Add what a report says of wrong designs, and return the number of its rows."""
    taken = 0
    for line in lines_of(report):
        design = str(line["design"])
        if not design.startswith("broken/"):
            continue
        anomalies = line["anomalies"]
        worst = anomalies[0]["name"] if anomalies else ""
        check = check_of(report.parent / str(line["history"]))
        kill = kills.Kill(anomaly=worst, check=check, seconds=float(line["seconds"]))
        matrix.designs.setdefault(design, kills.Judged()).add(
            str(line["id"]), str(line["verdict"]), kill
        )
        taken += 1
    return taken


def check_of(history: Path) -> str:
    """Return the check whose claim ended a history.

    The name is empty if something else ended the history, or if its file is gone.
    """
    if not history.is_file():
        return ""
    last = read_unpacked(history).decode().rstrip("\n").split("\n")[-2:]
    claim = json.loads(last[0])
    return str(claim["check"]) if claim["kind"] == "claim" else ""


def named_by(found: catalogue.Catalogue, design: Manifest) -> tuple[set[str], set[str]]:
    """Return the rows that a wrong design names, and the programs of these rows."""
    assert design.sin
    rows = [
        row
        for name in design.sin.scenarios
        for row in (found.by_row.get(name) or found.by_id[name]).rows
        if name in {row.id, found.by_row[row.id].id}
    ]
    return {row.id for row in rows}, {row.program or "" for row in rows}


def due(
    found: catalogue.Catalogue,
    design: Manifest,
    known: kills.Judged,
    cheap: Mapping[str, float],
    *,
    everywhere: bool,
) -> list[str]:
    """Return the cheap rows on which a wrong design is not judged yet, cheapest first."""
    named, programs = named_by(found, design)
    rows = [
        row.id
        for row in promised(found, design)
        if row.id in cheap.keys() - named - known.rows() and (everywhere or row.program in programs)
    ]
    return sorted(rows, key=cheap.__getitem__)


def dearest_first(found: catalogue.Catalogue, seconds: Mapping[str, float]) -> list[Manifest]:
    """Return the wrong designs, the dearest first.

    A design is as dear as the cheapest row that it names; another row may take less.
    """
    designs = [load(name) for name in shipped() if name.startswith("broken/")]
    cheapest = {
        design.name: min(seconds.get(row, UNKNOWN_S) for row in named_by(found, design)[0])
        for design in designs
    }
    return sorted(designs, key=lambda design: -cheapest[design.name])


def runs(left: Mapping[str, list[str]]) -> Iterator[dict[str, list[str]]]:
    """Yield the rows by design that one run judges, one run after the other.

    A few rows of every design come before more rows of any.
    """
    begin = 0
    for end in PASSES:
        chosen: dict[str, list[str]] = {}
        for name, rows in left.items():
            if rows[begin:end]:
                chosen[name] = rows[begin:end]
            if sum(map(len, chosen.values())) >= A_RUN:
                yield chosen
                chosen = {}
        if chosen:
            yield chosen
        begin = end or 0


def judge(chosen: Mapping[str, Iterable[str]], scratch: Path, lanes: int, within_s: float) -> Path:
    """Judge these rows of these designs, and return the report.

    The report is cut if the time was over.
    """
    shutil.rmtree(scratch / "run", ignore_errors=True)
    scratch.mkdir(parents=True, exist_ok=True)
    listed = scratch / "rows.txt"
    listed.write_text("".join(f"{name} {row}\n" for name, rows in chosen.items() for row in rows))
    designs = [argument for name in chosen for argument in ("--design", name)]
    command = commands.own_module("upheld", "run", *designs, "--rows", str(listed))
    command += ["--broker", "embedded", "--lanes", str(lanes), "--out", str(scratch / "run")]
    command += ["--max-seconds", str(min(A_RUN_S, max(1.0, within_s)))]
    with (scratch / "run.log").open("ab") as log:
        subprocess.run(command, stdout=log, stderr=log, check=False)
    return scratch / "run" / "report.jsonl"


def main() -> int:
    """Judge until all pairs are known or the time is over."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--durations", type=Path, help="a report of plain")
    parser.add_argument(
        "--scratch", type=Path, default=Path("kills"), help="where runs write (default: kills)"
    )
    parser.add_argument("--matrix", type=Path, default=kills.FILE)
    parser.add_argument("--lanes", type=int, default=3)
    parser.add_argument("--under", type=float, default=4.0, metavar="SECONDS")
    parser.add_argument(
        "--everywhere", action="store_true", help="also programs of which it names no row"
    )
    parser.add_argument("--max-minutes", type=float, default=1e6)
    parser.add_argument("--take", type=Path, nargs="*", default=[])
    arguments = parser.parse_args()
    found = catalogue.load()
    until_s = time.monotonic() + 60 * arguments.max_minutes
    matrix = kills.load(arguments.matrix) if arguments.matrix.exists() else kills.Kills()
    matrix.upheld = upheld.__version__
    for report in [*arguments.take, arguments.scratch / "run" / "report.jsonl"]:
        print(f"{report}: {take(matrix, report)} rows", flush=True)
    kills.save(matrix, arguments.matrix)
    if not arguments.durations:
        return 0
    seconds = seconds_of(arguments.durations)
    cheap = {row: took_s for row, took_s in seconds.items() if took_s < arguments.under}
    left = {}
    for design in dearest_first(found, seconds):
        known = matrix.designs.get(design.name, kills.Judged())
        rows = due(found, design, known, cheap, everywhere=arguments.everywhere)
        if rows:
            left[design.name] = rows
    total = sum(map(len, left.values()))
    done = 0
    began_s = time.monotonic()
    for chosen in runs(left):
        if time.monotonic() >= until_s:
            break
        report = judge(chosen, arguments.scratch, arguments.lanes, until_s - time.monotonic())
        done += take(matrix, report)
        kills.save(matrix, arguments.matrix)
        took_s = time.monotonic() - began_s
        print(
            f"{done} of {total} pairs in {took_s / 60:.0f} min, {took_s / max(1, done):.2f} s a "
            "pair",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
