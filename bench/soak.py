"""Is any verdict unstable? plain ten times and the reference three times, with one core kept busy.

`python bench/soak.py [DESIGN=REPEAT …]`; ends with the counts, and exit 1 where a row was not upheld every time.
"""

import multiprocessing
import subprocess
import sys


def burn() -> None:
    """Keep a core busy until ended."""
    while True:
        pass


def main(asked: list[str]) -> int:
    """Run each design under load."""
    repeats = dict(item.split("=", 1) for item in asked) or {"plain": "10", "spark": "3"}
    load = multiprocessing.Process(target=burn, daemon=True)
    load.start()
    codes = {}
    try:
        for design, repeat in repeats.items():
            command = ["streamgate", "run", "--design", design, "--broker", "embedded", "--repeat", repeat]
            codes[design] = subprocess.run(command, check=False).returncode
    finally:
        load.terminate()
    print("; ".join(f"{design} x {repeats[design]}: exit {code}" for design, code in codes.items()))
    return int(any(codes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
