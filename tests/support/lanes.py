"""A lane that judges nothing: each row has the verdict that a test wrote down."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

VERDICTS = "verdicts.json"  # row -> fields of its result; other rows are upheld
ASKED = "asked.txt"  # a line a process, and a line a row that it was asked for

LANE = f"""
import json, os, signal, sys
from pathlib import Path
assert os.environ["UPHELD_LANE"] == os.environ["UPHELD_RUN"]
here = Path({{here!r}})
def tell(**what): print(json.dumps(what), flush=True)
def note(what):
    with (here / {ASKED!r}).open("a") as file:
        print(what, file=file)
note("begun " + " ".join(sys.argv[1:]))
Path(sys.argv[sys.argv.index("--out") + 1]).mkdir()
tell(kind="opened", broker="no", version="1", why="a test")
verdicts = json.loads((here / {VERDICTS!r}).read_text())
for line in sys.stdin:
    design, row, repetition, is_alone = json.loads(line)
    assert is_alone
    note(row)
    fields = verdicts.get(row, {{{{}}}})
    if "text" in fields:
        tell(kind="problem", **fields)
        sys.exit()
    if "exit" in fields:
        sys.exit(fields["exit"])
    if "interrupts" in fields:
        signal.signal(signal.SIGTERM, lambda *_: (note("ended"), sys.exit()))
        os.kill(os.getppid(), signal.SIGINT)
        signal.pause()
    tell(**{{{{"kind": "row", "design": design, "id": row, "guarantee": row.partition(".")[0],
            "name": "a claim", "verdict": "upheld", "seconds": 1.5}}}} | fields)
note("closed")
"""


def lane_in(folder: Path, verdicts: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Write a lane into a folder, and return the command that begins it.

    Args:
        folder: The folder in which it also notes what it was asked for.
        verdicts: Row -> fields of its result.
    """
    (folder / VERDICTS).write_text(json.dumps(verdicts))
    file = folder / "lane.py"
    file.write_text(LANE.format(here=str(folder)))
    return [sys.executable, str(file)]


def asked_of(folder: Path) -> list[str]:
    """Return the rows that the lanes of a folder were asked for, in order."""
    return [line for line in noted(folder) if line.startswith("G")]


def noted(folder: Path) -> list[str]:
    """Return all that the lanes of a folder have noted."""
    file = folder / ASKED
    return file.read_text().splitlines() if file.exists() else []
