"""Write docs/anomalies.md: what each anomaly means, its causes, where to look.

    python tools/anomalies.py            write the page
    python tools/anomalies.py --check    exit with 1 if the page is out of date

The sentences stand in upheld/data/anomalies.toml. A picture is the timeline of a tiny history in
tests/support/anomaly_stories.py, which the check of the anomaly has judged.
"""

import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from anomaly_stories import CAPTIONS, TOLD
from pages import DOCS, Whole, listed

from upheld.protocol.manifest import load, shipped
from upheld.report.card import anomaly_lines
from upheld.report.timeline import drawn, lanes
from upheld.spec.anomalies import Described, anomalies

WIDTH: Final = 100
BEGINNING: Final = """\
# Anomalies

A red card names an anomaly: the way in which the history is wrong. This page says what each one
means, what usually causes it, and where to look first. The cards show values in the order of the
program's fields, and a place as topic-partition@offset.

Each picture is the timeline of a tiny history that was written by hand. In a timeline
`s` is a start, `R` ready, `X` a kill and `!` a fault or the record that the anomaly is about. The
signs `.`, `:`, `+` and `#` stand for few to many records, and `-` for an instance that is there.

`python tools/anomalies.py` writes this page.

"""


def wrong_designs() -> Mapping[str, list[str]]:
    """Return the shipped wrong designs that show each anomaly."""
    found: dict[str, list[str]] = {}
    for name in shipped():
        if sin := load(name).sin:
            found.setdefault(sin.anomaly, []).append(name)
    return found


def picture(name: str) -> Iterator[str]:
    """Yield the lines of a card: what the check says of the history, and its timeline."""
    told = TOLD[name]()
    anomaly = told.anomaly(name)
    yield from anomaly_lines(anomaly)
    yield "timeline"
    yield from (f"  {line}" for line in drawn(lanes(told.story.history, [anomaly])))


def section(name: str, said: Described, designs: list[str]) -> str:
    """Return the section of one anomaly."""
    card = "\n".join(picture(name))
    parts = [
        f"## {name}\n\n{said.meaning}\n",
        f"```text\n{card}\n```\n",
        f"{textwrap.fill(CAPTIONS[name], WIDTH)}\n",
        f"Usual causes:\n\n{listed(said.causes)}",
        f"Where to look first:\n\n{listed(said.look)}",
    ]
    if designs:
        names = ", ".join(f"`{design}`" for design in designs)
        told = f"Wrong designs of ours that show it: {names}."
        parts.append(textwrap.fill(told, WIDTH, break_on_hyphens=False) + "\n")
    return "\n".join(parts)


def page() -> str:
    """Return the text of the page."""
    designs = wrong_designs()
    sections = [section(name, said, designs.get(name, [])) for name, said in anomalies().items()]
    return BEGINNING + "\n".join(sections)


PAGE: Final = Whole(DOCS / "anomalies.md", page)

if __name__ == "__main__":
    sys.exit(PAGE.main(str(__doc__).partition("\n")[0]))
