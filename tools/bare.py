"""Run the README's two commands on a bare machine.

Bare is a fresh copy, an empty HOME, empty caches and no Java on PATH. `python tools/bare.py` runs
both commands, `python tools/bare.py main` the main job alone, and `main -- --guarantee G22` that
job on one guarantee. It prints the minutes of each.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {"main": ["bootstrap.py"], "tests": ["bootstrap.py", "tox"]}


def path_without_java(folder: Path) -> str:
    """Return a folder of links to each program on PATH but Java."""
    folder.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for program in Path(directory).glob("*") if Path(directory).is_dir() else ():
            link = folder / program.name
            if (
                not program.name.startswith(("java", "jar", "upheld", "tox"))
                and not link.is_symlink()
            ):
                link.symlink_to(program)
    return str(folder)


def main(chosen: list[str]) -> int:
    """Run the commands in order, and return the exit code of the first that fails."""
    own = list(takewhile(lambda word: word != "--", chosen))
    options = chosen[len(own) + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(COMMANDS)}")
    names: list[str] = parser.parse_args(own).names
    if unknown := [name for name in names if name not in COMMANDS]:
        parser.error(f"there is no command {unknown[0]}; there are {', '.join(COMMANDS)}")
    with tempfile.TemporaryDirectory(prefix="upheld-bare-") as temporary:
        scratch = Path(temporary)
        copy = Path(temporary) / "checkout"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(copy)], check=True)
        (scratch / "home").mkdir()
        # How this machine reaches the registries is its own affair: proxies and certificates stay.
        kept = {
            k: v
            for k, v in os.environ.items()
            if k.upper().startswith(("PIP_", "SSL_", "REQUESTS_", "LANG"))
        }
        kept |= {k: v for k, v in os.environ.items() if k.upper().endswith("_PROXY")}
        environment = kept | {
            "HOME": str(scratch / "home"),
            "PATH": path_without_java(scratch / "bin"),
        }
        if shutil.which("java", path=environment["PATH"]):
            print("there is a Java on the bare PATH, so this proves nothing", file=sys.stderr)
            return 3
        for name in names or COMMANDS:
            began = time.monotonic()
            code = subprocess.run(
                [
                    shutil.which("python3") or "python3",
                    *COMMANDS[name],
                    *(options and ["run", *options]),
                ],
                cwd=copy,
                env=environment,
                check=False,
            ).returncode
            print(
                f"{name}: exit {code} after {(time.monotonic() - began) / 60:.1f} minutes",
                flush=True,
            )
            if code:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
