"""`tox run -e gate -- path/to/design.toml …`: judge each design named, with any option of `upheld run` after it."""

import sys

from upheld.cli import main


def arguments(given: list[str]) -> list[str]:
    """Turn leading paths into --design options; a gate with no design is a usage error."""
    designs = 0
    while designs < len(given) and not given[designs].startswith("-"):
        designs += 1
    options = [option for path in given[:designs] for option in ("--design", path)]
    return ["run", *options, *given[designs:]]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print("gate: name a design: tox run -e gate -- path/to/design.toml", file=sys.stderr)
        sys.exit(4)
    sys.exit(main(arguments(sys.argv[1:])))
