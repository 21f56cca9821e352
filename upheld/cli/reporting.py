"""`upheld report`: show the report of a run, or several side by side."""

import argparse
from dataclasses import replace
from pathlib import Path

from upheld.cli.options import BESIDE
from upheld.errors import MachineProblem, UsageProblem
from upheld.report import file_of, matrix, read, table
from upheld.report.folder import is_ours
from upheld.report.formats import FORMATS, Shown
from upheld.report.reasons import unsupported
from upheld.spec import catalogue
from upheld.text import wrapped
from upheld.ui.console import console, width


def show_reports(arguments: argparse.Namespace) -> int:
    """Show reports in the format that is asked for; return 0, whatever they say."""
    known = catalogue.load()
    files = [file_of(path) for path in arguments.reports]
    found = matrix([read(file) for file in files], known.promises)
    shown = Shown(found, known, [file.parent for file in files])
    if arguments.format:
        print(FORMATS[arguments.format].text(shown), end="")
    elif arguments.html:
        to = _place(arguments.html, files)
        print(_written(to, FORMATS["html"].text(replace(shown, at=to.parent))))
    else:
        console().print(table(found))
        for reason in unsupported(found.rows):
            print(wrapped(reason, width(), indent=2))
    return 0


def _place(asked: Path, reports: list[Path]) -> Path:
    """Return where a page is to be.

    Raises:
        UsageProblem: There are several reports and no file is named, or the file is a link, or
            no page of a report.
    """
    if asked == BESIDE and len(reports) > 1:
        raise UsageProblem("Of several reports, --html needs the name of a file")
    to = reports[0].parent / BESIDE if asked == BESIDE else asked
    if to.is_symlink():
        raise UsageProblem(f"{to} is a link, and a page is written through none")
    if not is_ours(to, BESIDE.name):
        raise UsageProblem(f"{to} is no page of a report, and is not written over")
    return to


def _written(to: Path, text: str) -> Path:
    """Write a page, and return where it is.

    Raises:
        MachineProblem: The file cannot be written.
    """
    try:
        to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MachineProblem(f"{to} cannot be written: {error.strerror}") from None
    return to
