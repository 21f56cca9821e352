"""Collect recorded histories into a corpus, judge one again, or choose from it.

    python tools/corpus.py collect CORPUS RUN…   keep one history a design and row, compressed
    python tools/corpus.py judge CORPUS          exit 1 if a history gives another verdict
    python tools/corpus.py choose CORPUS         write the smallest part that shows all

The chosen part is written to tests/data/corpus.
"""

import argparse
import shutil
import sys
from math import inf
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from corpora import FOLDER, collect, differences, read_index, smallest, write_index


def main() -> int:
    """Do what the command line asks for, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("collect", "judge", "choose"))
    parser.add_argument("corpus", type=Path)
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN")
    parser.add_argument("--under-kib", type=float, default=inf, help="leave larger histories out")
    asked = parser.parse_args()
    if asked.what == "collect":
        print(
            f"{len(collect(asked.runs, asked.corpus, asked.under_kib))} histories in {asked.corpus}"
        )
        return 0
    index = read_index(asked.corpus)
    if asked.what == "judge":
        changed = 0
        for line in differences(asked.corpus, index):
            changed += 1
            print(line, flush=True)
        print(f"{len(index)} histories judged again, {changed} give something else")
        return int(changed > 0)
    chosen = smallest(asked.corpus, index)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for name in chosen:
        shutil.copy(asked.corpus / name, FOLDER / name)
    write_index(FOLDER, {name: index[name] for name in chosen})
    size = sum(each.stat().st_size for each in FOLDER.iterdir())
    print(f"{len(chosen)} histories in {FOLDER}, {size >> 10} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
