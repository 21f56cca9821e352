"""The pages that a tool writes: whole ones, and parts between two marks."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"


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


class Whole(NamedTuple):
    """A page that a tool writes whole.

    Attributes:
        path: The file.
        text: Returns what the file has to hold.
    """

    path: Path
    text: Callable[[], str]

    def out_of_date(self) -> Iterator[str]:
        """Yield why the page has to be written again; nothing if it is up to date."""
        if not self.path.exists():
            yield f"{self.path} is missing"
        elif self.path.read_text(encoding="utf-8") != self.text():
            yield f"{self.path} is out of date"

    def main(self, what: str, arguments: Sequence[str] | None = None) -> int:
        """Write the page, or check it; return the exit code."""
        parser = argparse.ArgumentParser(description=what)
        parser.add_argument("--check", action="store_true", help="write nothing, exit with 1")
        if parser.parse_args(arguments).check:
            found = list(self.out_of_date())
            print("\n".join(found) or f"{self.path} is up to date")
            return int(bool(found))
        self.path.write_text(self.text(), encoding="utf-8")
        return 0


def linked(name: str) -> str:
    """Return a link to the description of an anomaly, from a page in docs/."""
    return f"[`{name}`](anomalies.md#{name})"


def listed(items: Sequence[str]) -> str:
    """Return a list in Markdown, one item a line."""
    return "".join(f"- {item}\n" for item in items)
