"""`new` and `smoke`: a design to start from, and whether an adapter is sound."""

import argparse
import json
from typing import NamedTuple

from upheld.cli.choices import manifests
from upheld.cli.machine import opened_broker, out_folder, prepare_all, run_scope
from upheld.errors import ExitCode
from upheld.runner.smoke import Site, Watch, count, smoke
from upheld.scaffold import new
from upheld.text import visible
from upheld.ui.console import console
from upheld.ui.progress import Progress
from upheld.ui.timeleft import Mean


class Checked(NamedTuple):
    """A check of a design's adapter."""

    design: str
    check: str
    ok: bool
    text: str


def new_design(arguments: argparse.Namespace) -> int:
    """Write a design to start from."""
    new(arguments.directory)
    folder = visible(str(arguments.directory))
    print(f"{folder} holds a design; try: upheld smoke --design {folder}")
    return 0


def smoke_design(arguments: argparse.Namespace) -> int:
    """Hold a conversation with each design; return 1 if a check of one fails."""
    designs = manifests(arguments)
    out = out_folder()
    mean = Mean(sum(map(count, designs)))
    with run_scope() as run:
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
                )
                results += [Checked(design.name, *result) for result in checks]
        broker.close()
    if arguments.json:
        print(json.dumps([result._asdict() for result in results], indent=2))
    return ExitCode.UPHELD if all(result.ok for result in results) else ExitCode.VIOLATED
