"""Look for unstable verdicts: judge designs many times with one core kept busy.

By default `plain` is judged ten times and the reference three times, then the rows tagged @soak.

`python bench/soak.py [DESIGN=REPEAT …] [-- OPTION …]`, such as `spark=10 -- --only @joins`. It ends
with the counts, and with exit 1 if a row was not upheld every time.
"""

import argparse
import multiprocessing
import subprocess
import sys


def burn() -> None:
    """Keep a core busy until ended."""
    while True:
        pass


def main(asked: list[str]) -> int:
    """Run each design under load, and return 1 if any run failed."""
    ours = asked.index("--") if "--" in asked else len(asked)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("designs", nargs="*", metavar="DESIGN=REPEAT")
    designs: list[str] = parser.parse_args(asked[:ours]).designs
    if any("=" not in design for design in designs):
        parser.error("a design stands with its number of repeats, such as spark=10")
    repeats = dict(item.split("=", 1) for item in designs) or {"plain": "10", "spark": "3"}
    runs = [
        ("--design", design, "--repeat", repeat, *asked[ours + 1 :])
        for design, repeat in repeats.items()
    ]
    if not asked:
        runs += [("--design", design, "--only", "@soak") for design in repeats]
    load = multiprocessing.Process(target=burn, daemon=True)
    load.start()
    codes = {}
    try:
        for run in runs:
            command = ["upheld", "run", "--broker", "embedded", *run]
            codes[" ".join(run)] = subprocess.run(command, check=False).returncode
    finally:
        load.terminate()
    print("\n".join(f"exit {code}: {run}" for run, code in codes.items()))
    return int(any(codes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
