"""The entry of `python -m upheld`, and of the installed command.

It is thin, so that Ctrl-C is heard while the rest is still imported.
"""

import sys

from upheld import commands
from upheld.supervisor import interrupts


def main() -> int:
    """Run one command; returns its exit code."""
    commands.isolate()
    interrupts.hear()
    try:
        from upheld.cli import main as command

        return command()
    except KeyboardInterrupt:
        print("upheld: interrupted", file=sys.stderr)
        return 130
    finally:
        interrupts.hear_no_more()


if __name__ == "__main__":
    commands.leave_out_current_folder()
    sys.exit(main())
