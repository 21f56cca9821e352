"""`list`, `explain` and `schema`: the promises, and the protocol. No broker."""

import argparse
import json
from collections import Counter
from dataclasses import replace

from upheld.cli.choices import manifests, request_of
from upheld.judging.claims import anomalies_of
from upheld.protocol.schema import schema
from upheld.spec import catalogue, explain
from upheld.spec.depths import DEPTHS
from upheld.spec.selection import Request, chosen_rows


def list_rows(arguments: argparse.Namespace) -> int:
    """Print the rows that are chosen, and what each design has promised of them."""
    found = catalogue.load()
    designs = manifests(arguments)
    request = request_of(arguments)
    if not arguments.depth:  # a list without a depth shows all rows
        request = replace(request, depth="full")
    listing = explain.listing(found, designs, request.chooser(found))
    everything = chosen_rows(Request(depth="full"), found, designs)
    for name, ids in chosen_rows(request, found, designs).items():
        listing["designs"][name] = {
            "promised": len(everything[name]),
            "chosen": len(ids),
            "rows": sorted(ids),
        }
    if arguments.json:
        print(json.dumps(listing, indent=2))
        return 0
    for row in listing["rows"]:
        print(f"{row['depth']:<5} {row['id']:<70} {row['name']}")
    for untested in listing["untested"]:
        print(f"{'-':<5} {untested['id']:<70} untested: {untested['why']}")
    counts = listing["guarantees"]
    depths = Counter(row["depth"] for row in listing["rows"])
    each = ", ".join(f"{depths[depth]} {depth}" for depth in DEPTHS)
    print(
        f"{counts['all']} guarantees, {counts['specified']} specified, {counts['untested']} "
        "untested"
    )
    print(f"{len(listing['rows'])} rows ({each}; a depth holds those before it)")
    for name, design in listing["designs"].items():
        print(
            f"{name} promises {design['promised']} rows; {design['chosen']} of them are chosen here"
        )
    return 0


def explain_guarantee(arguments: argparse.Namespace) -> int:
    """Print what a guarantee promises, and what breaks it."""
    explained = explain.explanation(catalogue.load(), arguments.guarantee, anomalies_of)
    if arguments.json:
        print(json.dumps(explained.model_dump(mode="json"), indent=2), end="")
    else:
        print(explain.as_text(explained), end="")
    return 0


def print_schema(_: argparse.Namespace) -> int:
    """Print the messages of the protocol as JSON Schema."""
    print(json.dumps(schema(), indent=2))
    return 0
