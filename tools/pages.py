"""The parts of pages that a tool writes, each between two marks."""

from pathlib import Path
from typing import NamedTuple


class Part(NamedTuple):
    """A part of a page.

    Attributes:
        begin: The mark before it, with its line end.
        end: The mark after it.
    """

    begin: str
    end: str

    def of(self, page: Path) -> str:
        """Return the part as the page has it."""
        text = page.read_text(encoding="utf-8")
        return text.partition(self.begin)[2].partition(self.end)[0]

    def put(self, page: Path, text: str) -> None:
        """Write the part; the rest of the page stays."""
        before, _, rest = page.read_text(encoding="utf-8").partition(self.begin)
        after = rest.partition(self.end)[2]
        page.write_text(before + self.begin + text + self.end + after, encoding="utf-8")
