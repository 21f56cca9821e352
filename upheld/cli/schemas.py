"""`upheld schema`: the schemas of what is written and read. No broker."""

import argparse

from upheld.spec.schemas import text_of


def print_schema(arguments: argparse.Namespace) -> int:
    """Print a schema."""
    print(text_of(arguments.name), end="")
    return 0
