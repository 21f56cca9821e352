"""Write the golden files of tests/golden anew, after a change that was meant.

    python tools/golden.py

The diff shows each entry that changed; the commit's message says why.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import transcripts
from goldens import FOLDER, GOLDENS, as_text


def main() -> None:
    """Write every file."""
    FOLDER.mkdir(exist_ok=True)
    for name, entries in GOLDENS.items():
        (FOLDER / name).write_text(as_text(entries()), encoding="utf-8")
    transcripts.FILE.write_text(transcripts.as_text(transcripts.transcript()), encoding="utf-8")


if __name__ == "__main__":
    main()
