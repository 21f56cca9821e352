"""Write docs/programs.md: the contract of each program, and where it is judged.

    python tools/programs.py            write the page
    python tools/programs.py --check    exit with 1 if the page is out of date

The words of a contract are the docstring of the program's module.
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Final

from pages import DOCS, Whole

from upheld.programs import PROGRAMS
from upheld.programs.contract import Program
from upheld.protocol.manifest import load
from upheld.spec import catalogue

DESIGNS: Final = ("spark", "plain")
CONTRACTS: Final = ("relay", "ledger", "branches", "pulse", "batcher", "joins")
BEGINNING: Final = """\
# Programs

A program is a small dataflow that every design can build: its topics, its records, its parameters
and what its outputs are. Two teams that read a contract build the same thing. The harness holds a
model of each program, which folds the input as it stands in the log, and compares what a design
shows with it. [The protocol](protocol.md) says how a design is told to run one.

`upheld schema ledger` prints the JSON Schema of a program's records, with examples of each topic.
`upheld schema envelope` prints the `.proto` of an Envelope, with options of Go and Java.

`python tools/programs.py` writes this page from the docstrings of `upheld/programs`.
"""


def contract(module: str) -> str:
    """Return the contract of a module, with its first line as a heading."""
    doc = import_module(f"upheld.programs.{module}").__doc__ or ""
    head, _, rest = doc.partition("\n")
    names, _, what = head.partition(": ")
    return f"\n## {names}\n\n{what[0].upper()}{what[1:]}\n{rest.replace('``', '`')}"


def named_in(module: str) -> list[Program]:
    """Return the programs that a module's docstring is the contract of."""
    doc = import_module(f"upheld.programs.{module}").__doc__ or ""
    return [PROGRAMS[name] for name in doc.partition(":")[0].split(", ")]


def facts(program: Program) -> Iterator[str]:
    """Yield the lines of a program's table."""
    for role, kind in program.topics.items():
        yield f"| {kind} | `{role}` |"
    for name, value in program.parameters.items():
        yield f"| parameter | `{name}`, {value} if no scenario sets it |"
    judged = catalogue.load().guarantees.values()
    on_it = [each.id for each in judged if {program.name, "all"} & {*each.programs}]
    yield f"| judged for | {', '.join(on_it)} |"
    offered = [name for name in DESIGNS if program.name in load(name).programs]
    yield f"| built by | {', '.join(f'`{name}`' for name in offered)} |"


def page() -> str:
    """Return the text of the page."""
    parts = [BEGINNING]
    for module in CONTRACTS:
        parts.append(contract(module))
        for program in named_in(module):
            rows = "\n".join(facts(program))
            parts.append(f"\n| `{program.name}` | |\n|---|---|\n{rows}\n")
    return "".join(parts)


PAGE: Final = Whole(DOCS / "programs.md", page)

if __name__ == "__main__":
    sys.exit(PAGE.main(str(__doc__).partition("\n")[0]))
