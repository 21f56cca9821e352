"""`new` and `smoke`: a design to start from, and whether an adapter is sound."""

import argparse
import json
import sys
from collections.abc import Iterable
from shlex import quote
from typing import NamedTuple

from upheld.cli.choices import given, manifests
from upheld.cli.machine import opened_broker, own_folder, prepare_all, run_scope
from upheld.errors import ExitCode, UsageProblem
from upheld.protocol.manifest import Manifest
from upheld.runner.smoke import Site, Watch, conversations, count, smoke
from upheld.scaffold import new
from upheld.spec.selection import demand_listed
from upheld.text import visible, visible_data
from upheld.ui.console import console
from upheld.ui.progress import Progress
from upheld.ui.timeleft import Mean


class Checked(NamedTuple):
    """A check of a design's adapter."""

    design: str
    check: str
    ok: bool
    text: str
    log: tuple[str, ...]


def new_design(arguments: argparse.Namespace) -> int:
    """Write a design to start from."""
    files = new(arguments.directory, is_application=arguments.application)
    folder = visible(str(arguments.directory))
    if arguments.json:
        print(json.dumps({"folder": folder, "files": [visible(str(file)) for file in files]}))
    elif not arguments.quiet:
        if arguments.application:
            print(f"{folder} holds an application; try: upheld sweep --design {folder}")
        else:
            print(f"{folder} holds a design; try: upheld smoke --design {folder}")
    return 0


def _demand_adapters(arguments: argparse.Namespace, designs: Iterable[Manifest]) -> None:
    """Demand that each design has an adapter that a conversation can check.

    Raises:
        UsageProblem: One is an application without an adapter.
    """
    for name, design in zip(given(arguments), designs, strict=True):
        if design.application:
            folder = quote(name)
            raise UsageProblem(
                f"{design.name} is an application without an adapter, so there is none to check; "
                f"`upheld sweep --design {folder} --depth quick` starts it, and says what is wrong."
            )


def smoke_design(arguments: argparse.Namespace) -> int:
    """Hold a conversation with each design.

    Return the exit code of an adapter that failed.
    """
    designs = manifests(arguments)
    _demand_adapters(arguments, designs)
    demand_listed(arguments.program or (), arguments.mode or ())
    asked = {
        design.name: conversations(design, arguments.program or (), arguments.mode or ())
        for design in designs
    }
    designs = [design for design in designs if asked[design.name]]
    if not designs:
        print(
            "upheld: nothing to judge: the design declares no such program and mode; `upheld list` "
            "shows what it has promised.",
            file=sys.stderr,
        )
        return ExitCode.NOTHING_JUDGED
    mean = Mean(sum(map(count, asked.values())))
    with own_folder(arguments.out) as out, run_scope() as run:
        broker = opened_broker(arguments, run, out)
        prepare_all(designs, run, out)
        results = list[Checked]()
        with Progress(console(stderr=arguments.json)) as progress:
            progress.begin(mean.total, mean.seconds)
            for design in designs:
                checks = smoke(
                    design,
                    Site(broker, run, out / "logs"),
                    Watch(design.name, progress, mean),
                    asked[design.name],
                )
                results += [Checked(design.name, *result) for result in checks]
        broker.close()
    if arguments.json:
        print(json.dumps(visible_data([result._asdict() for result in results]), indent=2))
    return ExitCode.UPHELD if all(result.ok for result in results) else ExitCode.HARNESS_FAILED
