"""The rows that decorated tests ask for, understood before anything is started."""

import argparse
import contextlib
import io
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from upheld.cli import parsed
from upheld.cli.choices import manifests
from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.judging.choosing import chosen_rows
from upheld.lint.own import with_own
from upheld.protocol.manifest import Manifest
from upheld.spec import catalogue
from upheld.spec.catalogue import Catalogue
from upheld.spec.depths import DEPTHS
from upheld.spec.selection import Request, demand_known, demand_specs, promised
from upheld.testing.designs import Asked, Design

# Options of `upheld run` that a test may give; the others choose rows, or say when a run fails.
OPTIONS: Final = (
    "broker",
    "bootstrap",
    "client_properties",
    "image",
    "store",
    "seed",
    "time_scale",
    "report",
    "keep",
    "oracle",
)


class Understood(NamedTuple):
    """A design as its file and its options describe it.

    Attributes:
        arguments: The options, as `upheld run` understands them.
        manifest: The design.
    """

    arguments: argparse.Namespace
    manifest: Manifest


@cache
def known(features: tuple[Path, ...] = ()) -> Catalogue:
    """Return the catalogue, with features of a user's own; all of it is read once.

    Raises:
        UsageProblem: A feature cannot be read, or a scenario cannot be judged.
    """
    return with_own(known(), features) if features else catalogue.load()


def understood(design: Design) -> Understood:
    """Read a design and its options.

    Raises:
        UsageProblem: The design cannot be loaded, or an option is none for tests.
    """
    usual = _run_options(design, ())
    arguments = _run_options(design, design.options)
    for name, value in vars(arguments).items():
        if name not in {*OPTIONS, "argv", "parser"} and value != getattr(usual, name):
            allowed = ", ".join(_typed(each) for each in OPTIONS)
            raise UsageProblem(
                f"{design.path}: {_typed(name)} is no option of tests; they may have {allowed}."
            )
    (manifest,) = manifests(arguments)
    demand_known(known(), [manifest])
    demand_specs(known(), [manifest])
    return Understood(arguments, manifest)


def _typed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _run_options(design: Design, options: tuple[str, ...]) -> argparse.Namespace:
    """Return options as `upheld run` understands them."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            return parsed(["run", "--design", str(design.path), *options])
        except SystemExit:
            words = " ".join(said.getvalue().split())
            raise UsageProblem(f"{design.path}: {words or 'its options are none.'}") from None


def own_rows(asked: Asked, found: Understood) -> list[str]:
    """Return the ids of the rows of a user's own features, in their order.

    Raises:
        UsageProblem: A feature cannot be judged, or no row of them applies.
    """
    own = known(asked.features)
    shipped = known().by_row
    rows = [row.id for row in promised(own, found.manifest) if row.id not in shipped]
    if not rows:
        programs = ", ".join(found.manifest.programs)
        raise UsageProblem(
            f"{asked.features[0]}: no row applies to {found.manifest.name}, which runs {programs} "
            f"in mode {' or '.join(found.manifest.modes)}."
        )
    return rows


def rows_of(asked: Asked, found: Understood) -> list[str]:
    """Return the ids of the rows that are asked for, in the order of the catalogue.

    Those of a user's own features are asked for alone.

    Raises:
        UsageProblem: There is no such guarantee or depth, or no row of one of them applies.
    """
    if asked.features:
        return own_rows(asked, found)
    if asked.depth not in {None, *DEPTHS}:
        raise UsageProblem(
            f"There is no depth {asked.depth!r}; there are {', '.join(DEPTHS)}."
            f"{did_you_mean(asked.depth or '', DEPTHS)}"
        )
    ids = [known().guarantee(name).id for name in asked.guarantees]
    request = Request(guarantees=ids, depth=asked.depth)
    rows = chosen_rows(request, known(), [found.manifest])[found.manifest.name]
    has_rows = {known().by_row[row].guarantee for row in rows}
    lacking = [name for name in ids if name not in has_rows] if ids else [""] * (not rows)
    if lacking:
        of = f" of {', '.join(lacking)}" if ids else ""
        raise UsageProblem(
            f"{found.manifest.file}: no row{of} applies at depth {request.depth_asked}; "
            f"`upheld list --design {found.manifest.folder}` says why."
        )
    return [row for row in known().by_row if row in rows]
