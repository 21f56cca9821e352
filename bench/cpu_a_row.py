"""Measure the CPU-seconds of harness, broker and design for a row, by program.

    python bench/cpu_a_row.py                   the rows below, three times, of `plain`
    python bench/cpu_a_row.py --against FOLDER  the same by turns with another checkout, and ratios
    python bench/cpu_a_row.py --only '@G2' --repeat 5 --design spark

The costs of a row are those of the run between the row's beginning and its end. The costs before
the first row stand in a line of their own. Figures of one run may be compared, figures of two
machines may not.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from upheld import cli  # of the measured checkout, which PYTHONPATH names
from upheld.runner.plugin import Plugin

SEED = 7
ROWS = " or ".join(
    f"@{scenario}"
    for scenario in (
        "G1.replayed-after-a-crash",
        "G2.in-the-order-of-the-partition",
        "G7.repeats-upstream",
        "G22.dies-after-a-commit",
        "G33.tables-of-one-key",
        "G35.left-outer",
        "G40.aborted-upstream",
        "G67.reference-changes",
    )
)
PARTS = ("harness", "broker", "design")
JOINS = {"clients", "tickers", "holdings"}  # one line of the table: few rows each


class Cost(NamedTuple):
    """CPU-seconds that a run has taken so far, or between two moments."""

    harness: float
    broker: float
    design: float

    def since(self, before: "Cost") -> "Cost":
        """Return what came since an earlier moment."""
        return Cost(*(now - then for now, then in zip(self, before, strict=True)))


def spent() -> Cost:
    """Return the CPU-seconds that this run has taken.

    The harness is this process, the broker its JVM, and the design all the others.
    """
    me = psutil.Process()
    own = sum(me.cpu_times()[:2])
    whole = sum(me.cpu_times()[:4])
    broker = 0.0
    for child in me.children(recursive=True):
        with suppress(psutil.Error):
            took = sum(child.cpu_times()[:4])
            whole += took
            broker += took if child.name() == "java" and child.ppid() == me.pid else 0.0
    return Cost(own, broker, whole - own - broker)


def judge(arguments: list[str], costs: Path) -> int:
    """Run upheld in this process, and write the cost of each row as JSON lines.

    The first line is the cost of all before the first row.
    """
    protocol = Plugin.pytest_runtest_protocol
    lines: list[tuple[str, Cost]] = []

    def measured(self: Any, item: Any, nextitem: Any) -> bool:
        before = spent()
        if not lines:
            lines.append(("start", before))
        began = time.process_time()
        answer = protocol(self, item, nextitem)
        harness = time.process_time() - began  # what this bench takes itself is none of the row's
        lines.append((self.row(item)[1].id, spent().since(before)._replace(harness=harness)))
        return answer

    measured.pytest_impl = protocol.pytest_impl
    Plugin.pytest_runtest_protocol = measured
    try:
        return cli.main(arguments)
    finally:
        costs.write_text(json.dumps(lines), encoding="utf-8")


def run(checkout: Path, arguments: list[str], folder: Path) -> list[tuple[str, Cost]]:
    """Judge with the upheld of a checkout, in a process of its own."""
    folder.mkdir()
    costs = folder / "costs.json"
    command = [
        sys.executable,
        "-P",
        str(Path(__file__).resolve()),
        "--inside",
        str(costs),
        "run",
        *arguments,
    ]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    with (folder / "run.log").open("w") as log:
        code = subprocess.run(
            [*command, "--out", str(folder / "out")],
            env=environment,
            cwd=checkout,
            stdout=log,
            stderr=log,
            check=False,
        ).returncode
    if code:
        sys.exit(
            f"The run of {checkout} ended with exit code "
            f"{code}:\n{(folder / 'run.log').read_text()}"
        )
    return [(row, Cost(*cost)) for row, cost in json.loads(costs.read_text(encoding="utf-8"))]


def kind(row: str) -> str:
    """Return the line of the table that a row belongs to: its program, or joins."""
    program = row.partition("[")[2].partition("-")[0] or row
    return "joins" if program in JOINS else program


def means(lines: list[tuple[str, Cost]]) -> dict[str, tuple[int, Cost]]:
    """Return the number of rows and the mean of their costs, by line of the table."""
    found = defaultdict[str, list[Cost]](list)
    for row, cost in lines:
        found[kind(row)].append(cost)
    return {
        name: (len(costs), Cost(*(statistics.fmean(part) for part in zip(*costs, strict=True))))
        for name, costs in found.items()
    }


def table(found: dict[str, dict[str, tuple[int, Cost]]]) -> Iterator[str]:
    """Yield a line for each program and checkout.

    If there are two checkouts, a line for their ratios follows.
    """
    yield f"{'':8} {'':10} {'rows':>5}" + "".join(f"{part:>10}" for part in PARTS)
    for name in next(iter(found.values())):
        for checkout, costs in found.items():
            count, cost = costs[name]
            yield f"{name:8} {checkout:10} {count:5}" + "".join(f"{part:8.2f} s" for part in cost)
        if len(found) == 2:
            before, after = (costs[name][1] for costs in found.values())
            ratios = (now / then if then else 1.0 for now, then in zip(after, before, strict=True))
            yield f"{name:8} {'ratio':10} {'':5}" + "".join(f"{ratio:10.2f}" for ratio in ratios)


def main() -> None:
    """Judge the rows with each checkout by turns, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--against", type=Path, metavar="FOLDER", help="another checkout of upheld: before"
    )
    parser.add_argument("--only", default=ROWS)
    parser.add_argument("--design", default="plain")
    parser.add_argument("--repeat", type=int, default=3)
    said = parser.parse_args()
    own = Path(__file__).resolve().parents[1]
    checkouts = ({"before": said.against.resolve()} if said.against else {}) | {
        "after" if said.against else "": own
    }
    arguments = [
        "--design",
        said.design,
        "--broker",
        "embedded",
        "--seed",
        str(SEED),
        "--only",
        said.only,
    ]
    lines = defaultdict[str, list[tuple[str, Cost]]](list)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(said.repeat):
            for name, checkout in checkouts.items():
                lines[name] += run(checkout, arguments, Path(folder) / f"{number}-{name}")
    print("\n".join(table({name: means(costs) for name, costs in lines.items()})))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        sys.exit(judge(sys.argv[3:], Path(sys.argv[2])))
    main()
