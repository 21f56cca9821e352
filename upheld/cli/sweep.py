"""`upheld sweep`: kill a design at each of its requests, and judge the recovery."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from shlex import quote

from upheld import commands
from upheld.cli.choices import given, manifests, seed_of
from upheld.cli.machine import opened_rig, own_folder
from upheld.cli.options import SWEPT
from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.injectors.disk.watcher import Disk
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import MODES
from upheld.spec.depths import DEFAULT
from upheld.sweep.journal import Journal, Plan
from upheld.sweep.lanes import SideBySide
from upheld.sweep.points import LATER, LEFT, SIDES, Result, Side
from upheld.sweep.report import card, ending, exit_code, table
from upheld.sweep.run import Choice, run
from upheld.ui.console import console
from upheld.ui.progress import Progress
from upheld.verdicts import Verdict


def sweep_design(arguments: argparse.Namespace) -> int:
    """Kill a design at each point that is chosen, and return the exit code."""
    designs = manifests(arguments)
    if len(designs) > 1:
        raise UsageProblem("One design is swept at a time; give --design once.")
    (design,) = designs
    _fill_in(arguments, design)
    _demand_shares(arguments)
    arguments.disk = disks_of(arguments.disk)
    say = console(stderr=arguments.json)
    sides: tuple[Side, ...] = (*SIDES, *(side for side in LATER if getattr(arguments, side)))
    plan = replace(
        Plan.of(design, arguments.program, arguments.mode, arguments.points),
        sides=sides,
        disks=arguments.disk,
        time_scale=arguments.time_scale,
    )
    with own_folder(arguments.out) as out:
        journal = Journal(out, plan, arguments.seed)
        arguments.seed = seed_of(arguments) if journal.seed is None else journal.seed
        try:
            results = swept(arguments, design, journal, out)
        except KeyboardInterrupt:
            print(f"upheld: the same command goes on with --out {quote(str(out))}", file=sys.stderr)
            raise
    if arguments.json:
        print(json.dumps([result.model_dump(mode="json") for result in results], indent=2))
    else:
        say.print(table(results))
        say.print(f"record in {out}", markup=False)
    named = ("mode", "points") if design.application else ("program", "mode", "points")
    asked = [f"--{name} {getattr(arguments, name)}" for name in named]
    asked += [f"--{side}" for side in sides if side in LATER]
    asked += [f"--disk {','.join(arguments.disk)}"] if arguments.disk else []
    kind = (journal.broker or "auto").partition(" ")[0]
    again = f"upheld sweep --broker {kind} --design {given(arguments)[0]} {' '.join(asked)}"
    for result in results:
        if result.verdict is not Verdict.UPHELD:
            say.print(card(result, again, arguments.seed), markup=False)
    say.print(ending(results), markup=False)
    return exit_code(results)


def _fill_in(arguments: argparse.Namespace, design: Manifest) -> None:
    """Fill in what is swept where nothing is said of it.

    An application without an adapter has one program, and all of its life is swept.

    Raises:
        UsageProblem: The design has no such program or mode.
    """
    if design.application and arguments.program:
        raise UsageProblem(
            f"{design.name} is an application without an adapter, and runs no program of the "
            "suite; leave --program out."
        )
    program = next(filter(design.programs.__contains__, SWEPT), SWEPT[0])
    mode = next(filter(design.modes.__contains__, reversed(MODES)), MODES[-1])
    arguments.program = arguments.program or program
    arguments.mode = arguments.mode or mode
    arguments.points = arguments.points or ("all" if design.application else "txn")
    arguments.depth = arguments.depth or ("full" if design.application else DEFAULT)
    for asked, offered, what in (
        (arguments.program, design.programs, "program"),
        (arguments.mode, design.modes, "mode"),
    ):
        if asked not in offered:
            near = did_you_mean(asked, offered)
            raise UsageProblem(
                f"{design.name} has no {what} {asked}; it has {', '.join(offered)}.{near}"
            )


def _demand_shares(arguments: argparse.Namespace) -> None:
    """Refuse lanes where there is nothing to share out between them.

    Raises:
        UsageProblem: Single points are asked for, pairs, or a cluster of somebody else.
    """
    for option, is_given in (
        ("--point", bool(arguments.point)),
        ("--pairs", arguments.pairs),
        ("--bootstrap", bool(arguments.bootstrap)),
    ):
        if arguments.lanes > 1 and is_given:
            raise UsageProblem(
                "--lanes shares out all points of a depth, each lane on a broker of its own; "
                f"leave {option} out, or --lanes."
            )


def swept(
    arguments: argparse.Namespace, design: Manifest, journal: Journal, out: Path
) -> list[Result]:
    """Kill the design at each chosen point without a result; return all results."""
    say = console(stderr=arguments.json)
    if arguments.disk and (reason := _not_watched(design)):
        say.print(
            f"unsupported   changes to disks: {reason}",
            markup=False,
        )
        arguments.disk = ()
    with opened_rig(arguments, [design], out, say, {}) as rig:
        journal.go_on(f"{rig.broker.kind} {rig.broker.version}")
        rig.disk = Disk(rig.run.scratch, rig.run.spawn) if arguments.disk else None
        choice = Choice(arguments.point, arguments.depth, arguments.pairs)
        if arguments.lanes > 1:
            command = commands.own_module("upheld", *arguments.argv)
            choice = replace(choice, lanes=SideBySide(tuple(command), arguments.lanes, rig.run))
        with Progress(say) as progress:
            return run(rig, design, journal, progress, choice)


def _not_watched(design: Manifest) -> str:
    """Return why the changes of a design to its disks are not seen; empty if they are."""
    if design.images:
        return f"{design.name} runs in containers, which nobody watches"
    lacking = Disk.lacking()
    return lacking and f"on this machine nobody can be watched ({lacking})"


def disks_of(text: str | None) -> tuple[str, ...]:
    """Return the fates of an instance's own disk, as `--disk` lists them.

    Raises:
        UsageProblem: There is no such fate.
    """
    asked = () if text is None else tuple(dict.fromkeys(text.split(",")))
    if unknown := [each for each in asked if each not in LEFT]:
        raise UsageProblem(
            f"--disk: there is no disk {unknown[0]!r}; there are {', '.join(LEFT)}."
            f"{did_you_mean(unknown[0], LEFT)}"
        )
    return asked
