"""Earlier reports that a run looks at: its baseline, and the last of its folder."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from upheld.cli.options import LATEST
from upheld.errors import UsageProblem
from upheld.protocol.manifest import Manifest
from upheld.reading import is_file
from upheld.report import RowResult, baseline, file_of, read
from upheld.report.baseline import Baseline
from upheld.runner.choice import First
from upheld.spec.catalogue import Catalogue
from upheld.spec.selection import Request, Rows, own_rows, rows


def given_baseline(arguments: argparse.Namespace) -> Baseline | None:
    """Return the baseline that is named, if one is.

    Raises:
        UsageProblem: It is none, or `--across` is given alone.
    """
    if arguments.baseline is None:
        if arguments.across:
            raise UsageProblem(
                "--across says what may differ from a --baseline, and none is given; name one."
            )
        return None
    return baseline.load(arguments.baseline, arguments.across)


def demand_whole(arguments: argparse.Namespace) -> None:
    """Refuse to compare a shard with a baseline.

    A row that the design has given up is in no shard, and none of them would miss it.

    Raises:
        UsageProblem: A shard is asked for.
    """
    if arguments.shard and arguments.baseline is not None:
        raise UsageProblem(
            "--baseline is compared with a whole run, and --shard judges a part; leave it out "
            "here, and give it to `upheld merge`."
        )


def for_a_run(
    older: Baseline | None, request: Request, found: Catalogue, designs: Sequence[Manifest]
) -> Baseline | None:
    """Return the baseline with the rows that the run would judge if it promised them.

    Raises:
        UsageProblem: It judged none of one design.
    """
    if older is None:
        return None
    older.demand_designs(design.name for design in designs)
    return replace(older, expected={each.name: _due(request, found, each) for each in designs})


def _due(request: Request, found: Catalogue, design: Manifest) -> set[str]:
    """Return the ids of all rows that a request asks for, whether or not they are promised."""
    own = own_rows(found, design, request)
    if own is not None or request.file:
        return own or set()
    return {
        row.id
        for row in rows(found, request.chooser(found))
        if not found.is_newer(row, design.spec)
    }


def failed_before(older: Baseline | None, out: Path | None, chosen: Rows) -> First:
    """Return the chosen rows that failed in the baseline, or else in the last report.

    Args:
        older: The baseline, if there is one.
        out: The output folder that is named, if one is.
        chosen: Design -> ids of its rows.
    """
    if older:
        return _first(older.name, older.rows.values(), chosen)
    file = file_of(out or LATEST)
    if not is_file(file):
        return First()
    try:
        return _first(str(file), read(file)[0], chosen)
    except UsageProblem:  # it was cut, or is no report: the order of the rows is a help alone
        return First()


def _first(report: str, judged: Iterable[RowResult], chosen: Rows) -> First:
    failed: dict[str, set[str]] = {}
    for row in judged:
        if baseline.has_failed(row) and row.id in chosen.get(row.design, ()):
            failed.setdefault(row.design, set()).add(row.id)
    return First(report, failed)
