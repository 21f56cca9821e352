"""`upheld report`: show the report of a run, or several side by side."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from upheld.reading import is_folder
from upheld.report import matrix, read, table
from upheld.report.annotations import annotations
from upheld.report.markdown import markdown
from upheld.report.matrix import Matrix
from upheld.spec import catalogue
from upheld.text import visible_data
from upheld.ui.console import console


def show_reports(arguments: argparse.Namespace) -> int:
    """Print reports in the format that is asked for; return 0, whatever they say."""
    promises = {each.id: each.promise for each in catalogue.load().guarantees.values()}
    found = matrix([read(_file(path)) for path in arguments.reports], promises)
    if arguments.json:
        print(json.dumps(visible_data(_data(found)), indent=2))
    elif arguments.markdown:
        print(markdown(found), end="")
    elif arguments.github:
        for line in annotations(found.rows):
            print(line)
    else:
        console().print(table(found))
    return 0


def _file(path: Path) -> Path:
    return path / "report.jsonl" if is_folder(path) else path


def _data(found: Matrix) -> dict[str, object]:
    return {
        "columns": [column._asdict() for column in found.columns],
        "guarantees": list(_lines(found)),
    }


def _lines(found: Matrix) -> Iterator[dict[str, object]]:
    for line in found.lines:
        cells = [dict(cell.verdicts) if cell else None for cell in line.cells]
        yield {
            "id": line.guarantee,
            "promise": line.promise,
            "differs": line.differs,
            "verdicts": cells,
        }
