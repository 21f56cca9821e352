"""The choices that options make: designs, rows, the seed."""

import argparse
import random
from dataclasses import replace

from upheld import extras
from upheld.cli.rehearsal import examples
from upheld.errors import UsageProblem
from upheld.protocol import manifest
from upheld.protocol.manifest import Manifest
from upheld.spec.catalogue import Catalogue
from upheld.spec.depths import share_of
from upheld.spec.selection import Request, demand_programs, own_rows, promised


def manifests(arguments: argparse.Namespace) -> list[Manifest]:
    """Load the designs that are named, or the default one.

    Raises:
        UsageProblem: Two designs have one name, or one cannot be loaded, or its model fails.
    """
    told = {"compared_with": getattr(arguments, "oracle", None)}
    loaded = [manifest.load(name).model_copy(update=told) for name in given(arguments)]
    if earlier := getattr(arguments, "earlier", None):
        loaded = [released(manifest.load(earlier), later) for later in loaded]
    elif told["compared_with"] == "previous":
        raise UsageProblem(
            "--oracle previous compares a release with the one before it; name both, as --from N "
            "--to N+1."
        )
    if getattr(arguments, "timeouts", None) == "deployed":
        loaded = [design.as_deployed() for design in loaded]
    for design in loaded:
        _demand_own_broker(design, arguments)
        examples(design)
    demand_programs(loaded)
    names = [design.name for design in loaded]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageProblem(f"Two of the designs are named {twice}; give each a name of its own.")
    return loaded


def _demand_own_broker(design: Manifest, arguments: argparse.Namespace) -> None:
    """Refuse a cluster of somebody else for an application whose names are fixed.

    Raises:
        UsageProblem: Its names may be those of a deployment there.
    """
    if design.has_fixed_names and getattr(arguments, "bootstrap", None):
        raise UsageProblem(
            f"{design.file}: `names` are fixed, and on the cluster of --bootstrap they may be "
            "those of a deployment; leave out --bootstrap, and each row has a broker of its own."
        )


def request_of(arguments: argparse.Namespace) -> Request:
    """Return the rows that the options ask for.

    Raises:
        UsageProblem: The options contradict each other.
    """
    if arguments.rows and (
        arguments.only or arguments.guarantee or arguments.program or arguments.mode
    ):
        raise UsageProblem(
            "--rows names each row; leave out --only, --guarantee, --program and --mode."
        )
    return Request(
        only=arguments.only,
        guarantees=arguments.guarantee,
        programs=arguments.program or (),
        modes=arguments.mode or (),
        depth=arguments.depth,
        share=share_of(arguments.slice, "--slice") if arguments.slice else None,
        file=arguments.rows,
    )


def promised_rows(design: Manifest, found: Catalogue, request: Request) -> int:
    """Count the rows that a design is held to at full depth.

    For a wrong design these are the rows of its `[sin]`, and for a twin those of its `[twin]`,
    unless the request names more.
    """
    own = own_rows(found, design, replace(request, depth="full"))
    return len(promised(found, design) if own is None else own)


def given(arguments: argparse.Namespace) -> list[str]:
    """Return the names of the designs, each once.

    Raises:
        UsageProblem: One of two releases is not named, or a design is named beside them.
    """
    names = [*getattr(arguments, "designs", ()), *(arguments.design or ())]
    earlier = getattr(arguments, "earlier", None)
    later = getattr(arguments, "later", None)
    if earlier is None and later is None:
        return _named(arguments, names)
    if earlier is None or later is None:
        missing = "--from" if earlier is None else "--to"
        raise UsageProblem(f"Two releases have two names, --from N --to N+1; add {missing}.")
    if names:
        raise UsageProblem(
            f"--from and --to name the two releases that are judged, and {names[0]} is a third "
            "design; leave it out."
        )
    return [later]


def released(earlier: Manifest, later: Manifest) -> Manifest:
    """Return a release that takes over from an earlier one.

    Raises:
        UsageProblem: What the one leaves cannot be taken over by the other.
    """
    both = f"{earlier.file} and {later.file}"
    for what, ours, theirs in (
        ("program", earlier.programs, later.programs),
        ("mode", earlier.modes, later.modes),
    ):
        if not set(ours) & set(theirs):
            raise UsageProblem(
                f"{both} have no {what} in common, so neither takes over from the other: "
                f"{', '.join(ours)}, and {', '.join(theirs)}."
            )
    _demand_one_contract(earlier, later)
    return later.model_copy(update={"previous": earlier})


def _demand_one_contract(earlier: Manifest, later: Manifest) -> None:
    """Refuse two releases of which one reads or writes what the other does not.

    Raises:
        UsageProblem: An input or an output is one of one release alone.
    """
    for one, other in ((earlier, later), (later, earlier)):
        for table in _tables(one):
            if table not in _tables(other):
                raise UsageProblem(
                    f"{other.file} has no {table}, which {one.file} has, so neither release takes "
                    "over from the other."
                )


def _tables(design: Manifest) -> list[str]:
    """Return the tables of what an application without an adapter reads and writes."""
    if design.application is None:
        return []
    inputs = (f"[input.{name}]" for name in design.application.input)
    return [*inputs, *(f"[output.{name}]" for name in design.application.output)]


def _named(arguments: argparse.Namespace, names: list[str]) -> list[str]:
    """Return the names of designs, or the default one, each once."""
    if not names and arguments.default_design:
        _demand_default(arguments.default_design)
        names = [arguments.default_design]
    return list(dict.fromkeys(names))


def _demand_default(name: str) -> None:
    """Refuse a default design that cannot run here, before anything is started for it.

    Raises:
        UsageProblem: Nobody named it, and what it needs is not installed.
    """
    if name in extras.MODULES and (lack := extras.lack(name)):
        raise UsageProblem(
            f"No design is named, and the default one, {name}, cannot run: {lack}; or name one, "
            "such as --design plain."
        )


def seed_of(arguments: argparse.Namespace) -> int:
    """Return the seed that was given, or a new one."""
    return (
        arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 31)
    )
