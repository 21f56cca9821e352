"""Write the golden files of tests/data/golden anew, after a change that was meant.

    python tools/golden.py

The diff shows each entry that changed; the commit's message says why.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from goldens import write

if __name__ == "__main__":
    argparse.ArgumentParser(description=str(__doc__).partition("\n")[0]).parse_args()
    write()
