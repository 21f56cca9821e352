"""`upheld report`: show the report of a run, or several side by side."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from upheld.cli.options import BESIDE
from upheld.errors import MachineProblem, UsageProblem
from upheld.report import file_of, matrix, read, table
from upheld.report.annotations import annotations
from upheld.report.markdown import markdown
from upheld.report.matrix import Matrix
from upheld.report.page import GuaranteeText, ScenarioText, page
from upheld.spec import catalogue
from upheld.spec.gherkin import Scenario
from upheld.text import visible_data
from upheld.ui.console import console


def show_reports(arguments: argparse.Namespace) -> int:
    """Show reports in the format that is asked for; return 0, whatever they say."""
    known = catalogue.load()
    files = [file_of(path) for path in arguments.reports]
    found = matrix([read(file) for file in files], known.promises)
    if arguments.json:
        print(json.dumps(visible_data(_data(found)), indent=2))
    elif arguments.markdown:
        print(markdown(found), end="")
    elif arguments.github:
        for line in annotations(found.rows):
            print(line)
    elif arguments.html:
        text = page(found, dict(_texts(known)), [file.parent for file in files])
        print(_written(arguments.html, files, text))
    else:
        console().print(table(found))
    return 0


def _written(asked: Path, reports: list[Path], text: str) -> Path:
    """Write a page, and return where it is.

    Raises:
        UsageProblem: There are several reports and no file is named, or the file is a link.
        MachineProblem: The file cannot be written.
    """
    if asked == BESIDE and len(reports) > 1:
        raise UsageProblem("Of several reports, --html needs the name of a file")
    to = reports[0].parent / BESIDE if asked == BESIDE else asked
    if to.is_symlink():
        raise UsageProblem(f"{to} is a link, and a page is written through none")
    try:
        to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MachineProblem(f"{to} cannot be written: {error.strerror}") from None
    return to


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


def _texts(known: catalogue.Catalogue) -> Iterator[tuple[str, GuaranteeText]]:
    """Go through what the catalogue says of each guarantee."""
    for guarantee in known.guarantees.values():
        source = ""
        if guarantee.source:
            source = f"{known.sources[guarantee.source]}, {guarantee.section}"
        scenarios = [each for each in known.scenarios if each.guarantee == guarantee.id]
        texts = tuple(
            ScenarioText(each.id, each.name, f"features/{each.place}", tuple(_sentences(each)))
            for each in scenarios
        )
        yield (
            guarantee.id,
            GuaranteeText(
                guarantee.family.replace("_", " "), known.tags[guarantee.family], source, texts
            ),
        )


def _sentences(scenario: Scenario) -> Iterator[str]:
    """Go through the lines of a scenario as a feature has them."""
    before = None
    for step in scenario.steps:
        keyword = "And" if step.type == before else (step.type or "*").capitalize()
        before = step.type
        yield f"{keyword} {step.text}"
        for cells in step.table:
            yield f"  | {' | '.join(cells)} |"
