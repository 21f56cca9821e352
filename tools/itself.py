"""Compare the oracle `itself` with the models of programs, on the wrong designs.

python tools/itself.py --out /tmp/itself                 judge, and print the table
python tools/itself.py --out /tmp/itself --rounds 0      print the table of what was judged before

`--sample 8` takes at most 8 rows a shape and kind. `--write` puts the table on the page, and the
verdicts into upheld/data/kills_by_itself.json, by which the power of a row is known. A row that has
a verdict below the folder is not judged again. The samples are drawn with one seed: a bigger one
holds all rows of a smaller one.

Each wrong design is judged on the rows of relay and ledger in which a model has caught it
(upheld/data/kills.json), with `--oracle itself`. Rows that no application without a model is judged
on, by what they say, are left out. A kind of fault is that of the anomaly that the model found. The
exit code is 1 if the oracle catches less than 80 % of a kind in a shape. Rows that it cannot judge
count as not caught, and are counted beside.
"""

import argparse
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pages import DOCS, Part

import upheld
from upheld import commands
from upheld.checks.strength import asked
from upheld.judging.prerequisites import lacking
from upheld.protocol.manifest import load
from upheld.reading import loaded, read_bytes
from upheld.report import RowResult
from upheld.spec import catalogue, kills
from upheld.spec.power import BY_ITSELF
from upheld.verdicts import Verdict

SHAPES: Final[Mapping[str, str]] = {"relay": "map", "ledger": "fold"}
KINDS: Final[Mapping[str, str]] = {
    "lost": "loss",
    "behind-commit": "loss",
    "duplicated": "duplicate",
    "ahead-of-commit": "duplicate",
    "reordered": "order",
    "torn": "torn",
    "uncommitted-visible": "torn",
    "phantom": "not restored",
}
# The guarantees on state: what is wrong there was not restored.
OF_STATE: Final = frozenset({"G9", "G25", "G28", "G29", "G32"})
LEAST: Final = 0.8
SEED: Final = 7
PAGE: Final = DOCS / "application.md"
TABLE: Final = Part("<!-- written by tools/itself.py -->\n", "<!-- until here -->\n")


class Kill(NamedTuple):
    """A row in which a model has caught a wrong design."""

    design: str
    row: str
    shape: str
    kind: str


class Cell(NamedTuple):
    """The rows of a shape and a kind."""

    rows: int
    caught: int
    unsupported: int


def known() -> Iterator[Kill]:
    """Go through what models have caught on programs with one input and one output."""
    for design, found in kills.load().designs.items():
        for row, kill in found.killed.items():
            program = row.partition("[")[2].partition("-")[0]
            kind = KINDS.get(kill.anomaly)
            if program in SHAPES and kind and any(asked(kill.check)):
                guarantee = row.partition(".")[0]
                kind = "not restored" if guarantee in OF_STATE else kind
                yield Kill(design, row, SHAPES[program], kind)


def asked_of_applications(all_kills: Iterable[Kill]) -> Iterator[Kill]:
    """Go through the kills in rows that a design compared with itself is judged on."""
    rows = {row.id: row for scenario in catalogue.load().scenarios for row in scenario.rows}
    for kill in all_kills:
        design = load(kill.design).model_copy(update={"compared_with": "itself"})
        row = rows.get(kill.row)
        if row and not any(lacking(row, design)):
            yield kill


def sample(all_kills: Iterable[Kill], most: int) -> list[Kill]:
    """Return at most that many kills of each shape and kind, drawn with a fixed seed."""
    cells: dict[tuple[str, str], list[Kill]] = {}
    for kill in sorted(all_kills):
        cells.setdefault((kill.shape, kill.kind), []).append(kill)
    for kills_of_cell in cells.values():
        random.Random(SEED).shuffle(kills_of_cell)
    return [kill for kills_of_cell in cells.values() for kill in kills_of_cell[:most]]


def judge(all_kills: Iterable[Kill], out: Path, lanes: int) -> None:
    """Judge the wrong designs, compared with themselves, on rows without a verdict."""
    known_verdicts = verdicts_in(out)
    left = [kill for kill in all_kills if (kill.design, kill.row) not in known_verdicts]
    if not left:
        return
    number = len(list(out.glob("*.rows")))
    wanted = out / f"{number}.rows"
    wanted.write_text("".join(f"{kill.design} {kill.row}\n" for kill in left))
    designs = [word for name in {kill.design: 0 for kill in left} for word in ("--design", name)]
    command = ["run", *designs, "--rows", str(wanted), "--oracle", "itself", "--seed", str(SEED)]
    command += ["--broker", "embedded", "--lanes", str(lanes), "--out", str(out / str(number))]
    subprocess.run(commands.own_module("upheld", *command), check=False)


def save(all_kills: Iterable[Kill], out: Path) -> None:
    """Put the verdicts below a folder in the place of the shipped ones."""
    wanted = {(kill.design, kill.row) for kill in all_kills}
    found = kills.Kills(upheld=upheld.__version__)
    for row in rows_in(out):
        if (row.design, row.id) in wanted:
            anomaly = row.anomalies[0].name if row.anomalies else ""
            kill = kills.Kill(anomaly=anomaly, seconds=row.seconds)
            found.designs.setdefault(row.design, kills.Judged()).add(row.id, row.verdict, kill)
    kills.save(found, BY_ITSELF)


def table(
    all_kills: Iterable[Kill], verdicts: Mapping[tuple[str, str], Verdict]
) -> dict[tuple[str, str], Cell]:
    """Count what the oracle caught of what models caught, by shape and kind."""
    rows = Counter[tuple[str, str]]()
    caught = Counter[tuple[str, str]]()
    unsupported = Counter[tuple[str, str]]()
    for kill in all_kills:
        verdict = verdicts.get((kill.design, kill.row))
        if verdict is None:
            continue
        cell = (kill.shape, kill.kind)
        rows[cell] += 1
        caught[cell] += verdict is Verdict.VIOLATED
        unsupported[cell] += verdict is Verdict.UNSUPPORTED
    return {cell: Cell(rows[cell], caught[cell], unsupported[cell]) for cell in sorted(rows)}


def rows_in(out: Path) -> Iterator[RowResult]:
    """Go through the rows of all reports below a folder, also of those cut short."""
    for folder in sorted(out.glob("*/")):
        whole = folder / "report.jsonl"
        reports = [whole] if whole.exists() else sorted(folder.glob("lane-*/report.jsonl"))
        for report in reports:
            for line in map(loaded, read_bytes(report).split(b"\n")[:-1]):
                if line["kind"] == "row":
                    yield RowResult(**line)


def verdicts_in(out: Path) -> dict[tuple[str, str], Verdict]:
    """Return the verdicts of all reports below a folder, the last one of each row."""
    return {(row.design, row.id): row.verdict for row in rows_in(out)}


def lines(cells: Mapping[tuple[str, str], Cell]) -> str:
    """Return the table in Markdown."""
    found = [
        "| shape | kind | rows judged | itself catches | share | it cannot judge |\n",
        "|---|---|---|---|---|---|\n",
    ]
    for (shape, kind), cell in cells.items():
        share = f"{cell.caught / cell.rows:.0%}"
        numbers = f"{cell.rows} | {cell.caught} | {share} | {cell.unsupported}"
        found.append(f"| {shape} | {kind} | {numbers} |\n")
    return "".join(found)


def main() -> int:
    """Judge what was not judged yet, and print the table."""
    parser = argparse.ArgumentParser(description="Compare the oracle `itself` with models.")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the reports")
    parser.add_argument("--rounds", type=int, default=1, help="0 judges nothing")
    parser.add_argument("--sample", type=int, help="the most rows of a shape and kind")
    parser.add_argument("--lanes", type=int, default=3, help="rows side by side")
    parser.add_argument("--write", action="store_true", help="write the table and the verdicts")
    arguments = parser.parse_args()
    everything = list(known())
    all_kills = list(asked_of_applications(everything))
    print(f"{len(all_kills)} of {len(everything)} rows are judged without a model")
    if arguments.sample is not None:
        all_kills = sample(all_kills, arguments.sample)
    if arguments.rounds:
        arguments.out.mkdir(parents=True, exist_ok=True)
        judge(all_kills, arguments.out, arguments.lanes)
    cells = table(all_kills, verdicts_in(arguments.out))
    print(lines(cells), end="")
    if arguments.write:
        TABLE.put(PAGE, lines(cells))
        save(all_kills, arguments.out)
    return int(any(cell.caught < LEAST * cell.rows for cell in cells.values()))


if __name__ == "__main__":
    sys.exit(main())
