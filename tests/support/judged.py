"""One run of many designs, of which each is a test of its own."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from watched import watched

from upheld import commands, report
from upheld.report import RowResult

RUN_S = 1800

Rows = dict[str, dict[str, RowResult]]  # design -> row -> what it came to


class Judged(NamedTuple):
    """The exit code of a run, and its rows."""

    exit_code: int
    rows: Rows


def judge(designs: Iterable[str], out: Path, config: pytest.Config, *options: str) -> Judged:
    """Judge designs on an embedded broker, three rows at a time; write into `out`."""
    chosen = [argument for design in designs for argument in ("--design", design)]
    where = ["--broker", "embedded", "--lanes", "3", "--out", str(out)]
    command = commands.own_module("upheld", "run", *where, *options, *chosen)
    code = watched(command, out / "said.txt", RUN_S, config)
    rows: Rows = defaultdict(dict)
    for row in report.read(out / "report.jsonl")[0]:
        rows[row.design][row.id] = row
    return Judged(code, rows)


def chosen_for(test: str, names: Iterable[str], items: Iterable[pytest.Item]) -> list[str]:
    """Return the names with which a parametrized test is to run."""
    asked = {item.name for item in items}
    return [name for name in names if f"{test}[{name}]" in asked]
