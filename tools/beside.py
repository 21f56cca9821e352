"""Run commands beside each other; each command is one argument.

The output of the first command is seen at once. That of the others is printed when all have ended.

    python tools/beside.py "COMMAND" "COMMAND"
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
from contextlib import ExitStack


def ended(process: "subprocess.Popen[bytes]") -> int:
    """Return the exit code of a process.

    Ctrl-C has reached the process as well, and the process is given the time to clean up.
    """
    while True:
        try:
            return abs(process.wait())
        except KeyboardInterrupt:
            continue


def main(arguments: list[str]) -> int:
    """Run the commands, and return the greatest of their exit codes."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("commands", nargs="+", metavar="COMMAND")
    commands: list[str] = parser.parse_args(arguments).commands
    with ExitStack() as stack:
        kept = [stack.enter_context(tempfile.TemporaryFile()) for _ in commands[1:]]
        running = [
            subprocess.Popen(shlex.split(command), stdout=out, stderr=out)
            for command, out in zip(commands, [None, *kept], strict=True)
        ]
        codes = [ended(process) for process in running]
        for command, out in zip(commands[1:], kept, strict=True):
            out.seek(0)
            print(f"== {command}\n{out.read().decode(errors='replace')}", flush=True)
        return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
