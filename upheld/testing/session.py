"""The designs and rows of one session of pytest, each row judged once."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from upheld.testing.choosing import rows_of, understood
from upheld.testing.designs import Asked, Design
from upheld.testing.judge import Finding, Judge


class AskedRow(NamedTuple):
    """A row that a test asks for.

    Attributes:
        design: The design that is judged.
        row_id: The id of the row.
        name: The name of the row in the test's id.
    """

    design: Design
    row_id: str
    name: str


class Session:
    """The judges of one process of pytest, one a design."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._judges: dict[Design, Judge] = {}

    def rows(self, asked: Iterable[Asked]) -> list[AskedRow]:
        """Return the rows that the decorators of one test ask for, each once.

        Raises:
            UsageProblem: A design cannot be loaded, or no row applies.
        """
        by_design: dict[Design, dict[str, None]] = {}
        for each in asked:
            judge = self._judge(each.design)
            ids = rows_of(each, judge.found)
            judge.rows.update(ids)
            judge.features.update(dict.fromkeys(each.features))
            by_design.setdefault(each.design, {}).update(dict.fromkeys(ids))
        return [
            AskedRow(design, row_id, self._name(design, row_id, is_alone=len(by_design) == 1))
            for design, ids in by_design.items()
            for row_id in ids
        ]

    def _name(self, design: Design, row_id: str, *, is_alone: bool) -> str:
        return row_id if is_alone else f"{self._judge(design).found.manifest.name} {row_id}"

    def judged(self, asked: AskedRow) -> Finding:
        """Return the result of a row.

        Raises:
            Problem: No row of the design can be judged any more.
        """
        return self._judge(asked.design).judged(asked.row_id)

    @property
    def folders(self) -> list[Path]:
        """The folders of the reports."""
        return [judge.out for judge in self._judges.values() if judge.out]

    def _judge(self, design: Design) -> Judge:
        if design not in self._judges:
            self._judges[design] = Judge(understood(design), self._folder)
        return self._judges[design]

    def close(self) -> None:
        """End all that was started, and write the reports."""
        with contextlib.ExitStack() as stack:
            for judge in self._judges.values():
                stack.callback(judge.close)
