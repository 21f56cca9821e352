"""Write the index of the decisions in docs/adr, ordered by family.

    python tools/adr_index.py            write docs/adr/README.md
    python tools/adr_index.py --check    exit with 1 if the index is missing or out of date

A decision is a file NNNN-slug.md with a title, a list of metadata and four sections.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "adr"
INDEX: Final = "README.md"
NAME: Final = re.compile(r"(?P<number>\d{4})-[a-z0-9]+(?:-[a-z0-9]+)*\.md")
ACCEPTED: Final = "accepted"
KEYS: Final = ("Status", "Date", "Family", "Affects")
SECTIONS: Final = ("Context", "Decision", "Alternatives", "Consequences")
FAMILIES: Final = {
    "judging": "What a verdict rests on: claims, checks, anomalies, evidence and bounds in time.",
    "specification": "What guarantees, programs, contracts and rows ask for.",
    "harness": "How a run is made: processes, instances, workloads, lanes.",
    "faults": "How and when the harness strikes: moments, the proxy, disks, clocks, the sweep.",
    "brokers": "Brokers and clusters of the harness, and those of others.",
    "stores": "State stores beside Kafka.",
    "reference": "The design `spark`.",
    "plain design": "The design `plain`.",
    "Kafka clients": "How the designs of this project use librdkafka.",
    "tooling": "Environments, tests and CI.",
}
BEGINNING: Final = """\
# Decisions

One file is one decision: what was chosen, why, and what was measured. Series of measurements are in
the notebooks: [Spark](../notebooks/spark.md), [`plain`](../notebooks/plain.md),
[Kafka](../notebooks/kafka.md) and [the harness](../notebooks/harness.md).

`python tools/adr_index.py` writes this index.
"""

_HEAD = re.compile(r"# (?P<title>\S.*)\n\n(?P<metadata>(?:- .+\n(?:  .+\n)*)+)\n")
_ITEM = re.compile(r"- (?P<key>\w+): (?P<value>.+(?:\n  .+)*)")
_LINKED = re.compile(r"\]\((?P<name>[^)/]+)\)")


class Decision(NamedTuple):
    """The head of one file."""

    name: str
    number: int
    title: str
    status: str
    date: str
    family: str
    affects: tuple[str, ...]

    @property
    def line(self) -> str:
        """Return the decision's line of the index."""
        affects = ", ".join(self.affects)
        title = self.title if self.status == ACCEPTED else f"{self.title} ({self.status})"
        return f"| [{self.number:04}]({self.name}) | {title} | {affects} | {self.date} |"


def read(path: Path) -> Decision:
    """Read the head of a decision.

    Raises:
        ValueError: The name, the title or the metadata have another form than those of a decision.
    """
    named = NAME.fullmatch(path.name)
    if named is None:
        said = f"{path.name} is not named NNNN-slug.md"
        raise ValueError(said)
    head = _HEAD.match(path.read_text(encoding="utf-8"))
    if head is None:
        said = f"{path.name} does not begin with a title and a list of metadata"
        raise ValueError(said)
    items = _ITEM.findall(head["metadata"])
    if tuple(key for key, _ in items) != KEYS:
        said = f"{path.name} has other metadata than {', '.join(KEYS)}, in this order"
        raise ValueError(said)
    status, date, family, affects = (" ".join(value.split()) for _, value in items)
    if family not in FAMILIES:
        said = f"{path.name} has the family {family}, which is none of {', '.join(FAMILIES)}"
        raise ValueError(said)
    parts = tuple(affects.split(", "))
    return Decision(path.name, int(named["number"]), head["title"], status, date, family, parts)


def decisions(folder: Path = FOLDER) -> list[Decision]:
    """Read every decision of a folder, in the order of their numbers."""
    paths = sorted(path for path in folder.glob("*.md") if path.name != INDEX)
    return [read(path) for path in paths]


def index_of(found: Iterable[Decision]) -> str:
    """Return the text of the index."""
    every = list(found)
    return BEGINNING + "".join(_family(name, every) for name in FAMILIES)


def _family(name: str, found: Iterable[Decision]) -> str:
    lines = [decision.line for decision in found if decision.family == name]
    if not lines:
        return ""
    title = name[0].upper() + name[1:]
    table = "\n".join(["| | decision | affects | date |", "|---|---|---|---|", *lines])
    return f"\n## {title}\n\n{FAMILIES[name]}\n\n{table}\n"


def out_of_date(folder: Path = FOLDER) -> Iterator[str]:
    """Say what is wrong with the index of a folder; nothing if it is up to date."""
    found = decisions(folder)
    index = folder / INDEX
    if not index.exists():
        yield f"{index} is missing"
        return
    text = index.read_text(encoding="utf-8")
    if text == index_of(found):
        return
    yield f"{index} is out of date"
    lines = text.splitlines()
    listed = set(_LINKED.findall(text))
    for decision in found:
        if decision.name not in listed:
            yield f"{decision.name} is not in it"
        elif decision.line not in lines:
            yield f"{decision.name} has another line in it"
    names = {decision.name for decision in found}
    yield from (f"{name} is in it and does not exist" for name in sorted(listed - names))


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> int:
    """Write or check the index of a folder; return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if needed")
    asked = parser.parse_args(arguments)
    try:
        if asked.check:
            wrong = list(out_of_date(folder))
            if wrong:
                print(*wrong, "`python tools/adr_index.py` writes the index.", sep="\n")
            return int(bool(wrong))
        (folder / INDEX).write_text(index_of(decisions(folder)), encoding="utf-8")
    except ValueError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
