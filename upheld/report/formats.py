"""The formats that a report is shown in, each for another reader."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from upheld.errors import UsageProblem
from upheld.report import baseline, junit
from upheld.report.annotations import annotations
from upheld.report.badge import badge
from upheld.report.hints import hints
from upheld.report.markdown import markdown
from upheld.report.matrix import Matrix, as_data
from upheld.report.messages import ndjson
from upheld.report.page import page
from upheld.report.pictures import drawing
from upheld.report.reasons import pinned
from upheld.report.texts import texts
from upheld.spec import kills
from upheld.spec.catalogue import Catalogue
from upheld.text import visible_data


@dataclass(frozen=True)
class Shown:
    """Reports, and what a format needs beside them.

    Attributes:
        found: The matrix of the reports.
        known: What they were judged by.
        folders: The output folder of each.
        errors: What failed outside of all rows.
        at: The folder that the text will lie in; that of the first report, if it is None.
    """

    found: Matrix
    known: Catalogue
    folders: Sequence[Path]
    errors: Sequence[str] = ()
    at: Path | None = None

    @cached_property
    def hints(self) -> list[str]:
        """The sentences that a reader of the verdicts has to know beside them."""
        compared = [
            line
            for summary in self.found.summaries
            if summary.baseline
            for line in baseline.lines(summary.baseline)
        ]
        new = [
            line
            for summary in self.found.summaries
            for line in pinned(summary.specs, summary.newer)
        ]
        return [*compared, *new, *hints(self.found.rows, kills.load())]


class Format(NamedTuple):
    """One format.

    Attributes:
        file: The file that a run writes it to, beside its `report.jsonl`.
        text: Returns the text of that file.
    """

    file: str
    text: Callable[[Shown], str]


def _junit(shown: Shown) -> str:
    return junit.text(shown.found.reports(), shown.errors, shown.hints)


def _page(shown: Shown) -> str:
    at = shown.at or shown.folders[0]
    return page(shown.found, dict(texts(shown.known)), shown.folders, at, shown.hints)


def _markdown(shown: Shown) -> str:
    return markdown(shown.found, shown.hints)


def _annotations(shown: Shown) -> str:
    return "".join(f"{line}\n" for line in annotations(shown.found.rows, shown.hints))


def _json(shown: Shown) -> str:
    return json.dumps(visible_data(as_data(shown.found) | {"hints": shown.hints}), indent=2) + "\n"


def _badge(shown: Shown) -> str:
    return json.dumps(badge(shown.found.rows, shown.found.summaries), indent=2) + "\n"


def _messages(shown: Shown) -> str:
    reports = list(shown.found.reports())
    if len(reports) > 1:
        raise UsageProblem("Messages are of one run: name one report")
    ((rows, summary),) = reports
    return ndjson(rows, summary, shown.known.features, lambda row: drawing(shown.folders[0], row))


# The names are those of `--report`; `upheld.report.folder.FILES` says how each file begins.
FORMATS: Final = {
    "junit": Format("junit.xml", _junit),
    "html": Format("index.html", _page),
    "markdown": Format("summary.md", _markdown),
    "github": Format("annotations.txt", _annotations),
    "json": Format("verdicts.json", _json),
    "badge": Format("badge.json", _badge),
    "messages": Format("messages.ndjson", _messages),
}


USUAL: Final = ("junit", "html")  # what a run makes of its report, if it is not told


def write_all(names: Iterable[str], shown: Shown) -> None:
    """Write the report of one run into its folder, in each of these formats.

    Raises:
        OSError: A file cannot be written.
    """
    for name in names:
        to = shown.folders[0] / FORMATS[name].file
        to.write_text(FORMATS[name].text(shown), encoding="utf-8")
