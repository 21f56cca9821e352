"""Run commands beside each other, each one argument: what the first says is seen at once, that of
the others when all have ended.

python tools/beside.py "COMMAND" "COMMAND"
"""

import shlex
import subprocess
import sys
import tempfile
from contextlib import ExitStack


def ended(process: "subprocess.Popen[bytes]") -> int:
    """Its exit code; Ctrl-C has reached it as well, and it is given the time to clean up."""
    while True:
        try:
            return abs(process.wait())
        except KeyboardInterrupt:
            continue


def main(commands: list[str]) -> int:
    """The greatest of their exit codes."""
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
