"""Judge light designs again and again, and count the verdicts that are not stable.

python tools/stability.py --rounds 3    judge three rounds, and write docs/stability.md
python tools/stability.py --rounds 0    write the page of what was judged before

A round judges `plain` (core, and an eighth of its other rows), the twins and the wrong designs. One
core is kept busy for a third of the time. A verdict is unstable if it differs from most verdicts of
the same design, row and commit. The reports are kept, and each call adds to the commit's line.
"""

import argparse
import math
import multiprocessing
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from pages import Part

from upheld import commands
from upheld.errors import UsageProblem
from upheld.protocol.manifest import shipped
from upheld.report import read
from upheld.verdicts import Verdict

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "stability.md"
TABLE: Final = Part("<!-- written by `tox run -e stability` -->\n", "<!-- until here -->\n")
TWINS: Final = ROOT / "tests" / "twins" / "designs"
SLICES: Final = 8
PERIOD_S: Final = 60  # of the load on one core
BUSY_S: Final = 20
RARE: Final = 0.05  # the chance that the bound is too low

Row = tuple[str, str]  # design, id


class Counted(NamedTuple):
    """The judged rows of one commit.

    Attributes:
        rows: How many were judged, more than once each.
        kinds: How many different ones, by design and id.
        unstable: The verdicts that differ from most of their kind, with how often each came.
    """

    rows: int
    kinds: int
    unstable: dict[str, int]


def count(verdicts: Iterable[tuple[Row, Verdict]]) -> Counted:
    """Count the verdicts that differ from most of the same design and row.

    A row that was judged once has nothing to differ from, and does not count.
    """
    judged: dict[Row, Counter[Verdict]] = defaultdict(Counter)
    for row, verdict in verdicts:
        judged[row][verdict] += 1
    found = {row: counts for row, counts in judged.items() if counts.total() > 1}
    unstable = {
        f"{' '.join(row)}: {verdict}": times
        for row, counts in sorted(found.items())
        for verdict, times in counts.most_common()[1:]
    }
    return Counted(sum(counts.total() for counts in found.values()), len(found), unstable)


def bound(unstable: int, rows: int) -> float:
    """Return the share of unstable verdicts that is exceeded with a chance of 5 %.

    Their number is taken as Poisson's: 3/n for none, 4.7/n for one.
    """
    low = 0.0
    high = 10.0 + 3 * unstable
    while high - low > 1e-6:
        mean = (low + high) / 2
        chance = math.fsum(
            math.exp(-mean) * mean**seen / math.factorial(seen) for seen in range(unstable + 1)
        )
        low, high = (mean, high) if chance > RARE else (low, mean)
    return high / rows


def table(lines: dict[str, str]) -> str:
    """Return the table: the line of each commit, and the sum of all."""
    cells = [line.split(" | ") for line in lines.values()]
    rows = sum(int(each[1]) for each in cells)
    unstable = sum(int(each[3].partition(":")[0]) for each in cells)
    return "\n".join(
        [
            "",
            "| commit | rows judged | different ones | unstable | at most |",
            "|---|---|---|---|---|",
            *lines.values(),
            f"| all | {rows} | | {unstable} | {bound(unstable, rows):.2%} |",
            "",
            "",
        ]
    )


def line(commit: str, counted: Counted) -> str:
    """Return the line of a commit, which names each unstable verdict."""
    unstable = sum(counted.unstable.values())
    named = "; ".join(f"{name} ({times})" for name, times in counted.unstable.items())
    said = f"{unstable}: {named}" if named else "0"
    most = f"{bound(unstable, counted.rows):.2%}"
    return f"| {commit} | {counted.rows} | {counted.kinds} | {said} | {most} |"


def lines_of(text: str) -> dict[str, str]:
    """Return the lines of a table that are of commits, by commit."""
    lines = [each for each in text.splitlines() if each.startswith("| ")]
    by_name = {each.split(" | ")[0][2:]: each for each in lines}
    return {name: each for name, each in by_name.items() if name not in {"commit", "all"}}


def judged(out: Path) -> Iterator[tuple[Row, Verdict]]:
    """Yield the rows of all reports below a folder that have an end."""
    for report in sorted(out.glob("*/report.jsonl")):
        with suppress(UsageProblem):
            for row in read(report)[0]:
                yield (row.design, row.id), row.verdict


def burn() -> None:
    """Keep a core busy for a part of each period until ended."""
    while True:
        end_s = time.monotonic() + BUSY_S
        while time.monotonic() < end_s:
            pass
        time.sleep(PERIOD_S - BUSY_S)


def rounds(number: int, out: Path, lanes: int) -> None:
    """Judge so many rounds, each in three runs."""
    twins = [str(folder) for folder in sorted(TWINS.iterdir())]
    wrong = [name for name in shipped() if name.startswith("broken/")]
    before = len(list(out.glob("*-plain")))
    for each in range(before, before + number):
        part = f"{each % SLICES + 1}/{SLICES}"
        _judge(["plain"], ["--slice", part], out / f"{each:03}-plain", lanes)
        _judge(twins, [], out / f"{each:03}-twins", lanes)
        _judge(wrong, [], out / f"{each:03}-wrong", lanes)


def _judge(designs: Iterable[str], options: Iterable[str], out: Path, lanes: int) -> None:
    command = commands.own_module("upheld", "run", *options, "--lanes", str(lanes))
    command += ["--broker", "embedded", "--depth", "core", "--out", str(out)]
    for design in designs:
        command += ["--design", design]
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.with_suffix(".txt").open("w") as said:
        subprocess.run(command, check=False, cwd=ROOT, stdout=said, stderr=said)
    if not (out / "report.jsonl").exists():
        raise UsageProblem(f"nothing was judged: see {out.with_suffix('.txt')}")


def head() -> str:
    """Return the commit that is checked out, in ten digits.

    Raises:
        UsageProblem: Files differ from it, so that nobody could say what was judged.
    """
    git = ["git", "-C", str(ROOT)]
    changed = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True)
    others = [line for line in changed.stdout.decode().splitlines() if str(PAGE.name) not in line]
    if others:
        raise UsageProblem(f"commit first: {others[0].strip()} and what else is not committed")
    said = subprocess.run(
        [*git, "rev-parse", "--short=10", "HEAD"], check=True, capture_output=True, text=True
    )
    return said.stdout.strip()


def write(commit: str, counted: Counted) -> None:
    """Put the line of a commit into the page's table, beside those of other commits."""
    lines = lines_of(TABLE.of(PAGE)) | {commit: line(commit, counted)}
    TABLE.put(PAGE, table(lines))


def main(arguments: Iterable[str] | None = None) -> int:
    """Judge, and write the page; return 1 if a verdict was not stable."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1, help="how many (default: 1)")
    parser.add_argument("--lanes", type=int, default=3, help="rows side by side (default: 3)")
    parser.add_argument("--out", type=Path, default=ROOT / ".tox" / "out" / "stability")
    options = parser.parse_args(list(arguments) if arguments is not None else None)
    try:
        commit = head()
        out = options.out / commit
        load = multiprocessing.Process(target=burn, daemon=True)
        load.start()
        try:
            rounds(options.rounds, out, options.lanes)
        except KeyboardInterrupt:
            print("cut short; what was judged is counted", file=sys.stderr)
        finally:
            load.terminate()
    except UsageProblem as problem:
        print(problem, file=sys.stderr)
        return 4
    counted = count(judged(out))
    if not counted.rows:
        print(f"no row was judged twice on {commit} yet", file=sys.stderr)
        return 0
    write(commit, counted)
    print(line(commit, counted))
    return int(bool(counted.unstable))


if __name__ == "__main__":
    sys.exit(main())
