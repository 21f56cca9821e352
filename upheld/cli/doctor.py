"""`upheld doctor`: start an application once, and say what is wrong."""

import argparse
import json
from pathlib import Path

from upheld.brokers import Asked, open_broker
from upheld.cli.machine import demand_early, own_folder, prepare_all, run_scope
from upheld.doctor.completed import Addition, additions, assumed, completed, shaped
from upheld.doctor.findings import MARKS, Case, Finding, findings, is_judgeable, mended
from upheld.doctor.visit import Patience, Site, visit
from upheld.errors import ExitCode, UsageProblem
from upheld.protocol import manifest
from upheld.reading import is_file, is_folder, read_bytes, read_toml
from upheld.text import sentence, visible, visible_data, wrapped
from upheld.ui.console import announce, width

INDENT = 2
MARK = "\ufeff"  # as some editors begin a file


def visit_design(arguments: argparse.Namespace) -> int:
    """Visit an application, print what was found, and return the exit code."""
    file = _file(arguments.directory)
    tables = read_toml(file)
    if "process" not in tables:
        raise UsageProblem(
            f"{file} has no [process]: it is no application without an adapter; upheld smoke looks "
            "at a design with one."
        )
    design = manifest.load(str(file), assumed(tables, file.parent.resolve()))
    demand_early([design])
    with own_folder(arguments.out) as out, run_scope() as run:
        _say("the broker starts")
        broker = open_broker(Asked(arguments.broker), run=run, log_dir=out / "logs")
        try:
            prepare_all([design], run, out)
            seen = visit(Site(run, broker, out / "logs"), design, Patience(), _say)
        finally:
            broker.close()
    added = additions(tables, file.parent.resolve(), seen.seen)
    found = findings(Case(shaped(design, added), seen))
    if arguments.write and added:
        _write(file, added)
        found = mended(found, added)
    if arguments.json:
        said = {
            "design": design.name,
            "judgeable": is_judgeable(found),
            "findings": [each._asdict() for each in found],
            "missing": [each._asdict() for each in added],
            "seen": seen.seen.model_dump(mode="json"),
        }
        print(json.dumps(visible_data(said), indent=2))
    else:
        _print(found, quiet=arguments.quiet)
        _print_missing(file, added, written=arguments.write)
        _say(f"logs in {out / 'logs'}")
    return ExitCode.UPHELD if is_judgeable(found) else ExitCode.VIOLATED


def _file(given: Path) -> Path:
    """Return the design.toml that was named.

    Raises:
        UsageProblem: There is none.
    """
    file = given / manifest.FILE_NAME if is_folder(given) else given
    if not is_file(file):
        raise UsageProblem(
            f"{file} does not exist; docs/doctor.md shows the few lines that it begins with."
        )
    return file


def _say(what: str) -> None:
    announce(f"upheld: {visible(what)}")


def _print(found: list[Finding], *, quiet: bool) -> None:
    """Print a line a finding, and the way out below it."""
    names = max(len(each.code) for each in found)
    for each in found:
        if quiet and each.mark == "fine":
            continue
        begin = f"{MARKS[each.mark]} {each.code:{names}}  "
        print(wrapped(f"{begin}{visible(sentence(each.text))}", width(), indent=len(begin)))
        if each.way_out:
            way_out = f"{' ' * (len(begin) - INDENT)}→ {visible(sentence(each.way_out))}"
            print(wrapped(way_out, width(), indent=len(begin)))
    wrong = sum(each.mark == "wrong" for each in found)
    if wrong:
        print(f"{wrong} of these would make verdicts wrong: mend them first.")
    elif not quiet:
        print("It can be judged.")


def _print_missing(file: Path, added: list[Addition], *, written: bool) -> None:
    """Print the lines that the file lacks."""
    if not added:
        return
    said = "now has" if written else "lacks (--write adds them)"
    print(f"{visible(str(file))} {said}:")
    for each in added:
        table = f"[{'.'.join(each.table)}] " if each.table else ""
        print(f"  {table}{visible(each.line)}")


def _write(file: Path, added: list[Addition]) -> None:
    """Add lines to a file; every byte that was there stays."""
    text = read_bytes(file).decode()
    begin = MARK if text.startswith(MARK) else ""
    new = begin + completed(text.removeprefix(begin), added)
    file.write_bytes(new.encode())
