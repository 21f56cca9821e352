"""`upheld run` and `upheld merge`: judge designs, then print table and exit code."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shlex import quote

import pytest
from rich.console import Console

from upheld import commands
from upheld.cli import options
from upheld.cli.choices import (
    given,
    manifests,
    promised_rows,
    request_of,
    seed_of,
)
from upheld.cli.earlier import demand_whole, failed_before, for_a_run, given_baseline
from upheld.cli.machine import (
    begin_report,
    demand_early,
    given_stores,
    opened_rig,
    out_folder,
    own_folder,
    prepare_all,
    run_scope,
    subjects_of,
    unusable,
)
from upheld.errors import ExitCode, MachineProblem, UsageProblem
from upheld.judging.choosing import chosen_rows
from upheld.lint.own import with_own
from upheld.protocol.limits import Limit
from upheld.protocol.manifest import Manifest
from upheld.report import RowResult, Summary, baseline, file_of, hints, matrix, read, table
from upheld.report.folder import HISTORIES
from upheld.report.model import Release
from upheld.report.oracles import resting
from upheld.report.reasons import pinned, shortened, unsupported
from upheld.runner.account import RunAccount
from upheld.runner.choice import Choice, First
from upheld.runner.lane import LanePlugin, Line, as_lane, is_lane
from upheld.runner.lanes import Lanes
from upheld.runner.plugin import Plugin
from upheld.runner.plugin import arguments as pytest_arguments
from upheld.runner.shards import merge, shard
from upheld.spec import catalogue, durations, kills
from upheld.spec.depths import share_of
from upheld.spec.selection import Request, demand_known, demand_specs, newer_rows
from upheld.text import visible, visible_data
from upheld.ui.console import PlainConsole, console


def run_designs(arguments: argparse.Namespace) -> int:
    """Judge the rows that are chosen, and return the exit code of the run."""
    in_lane = is_lane()
    designs = manifests(arguments)
    found = with_own(catalogue.load(), arguments.features)
    _demand_fitting(arguments)
    older = None if in_lane else given_baseline(arguments)
    stores = given_stores(arguments.store)
    demand_known(found, designs)
    demand_specs(found, designs)
    request = request_of(arguments)
    known = durations.load()
    rows = chosen_rows(request, found, designs)
    if not any(rows.values()):
        print(
            "upheld: nothing to judge: no promised row is chosen; `upheld list` shows the rows.",
            file=sys.stderr,
        )
        return ExitCode.NOTHING_JUDGED
    if arguments.shard:
        rows = shard(rows, share_of(arguments.shard, "--shard"), known.seconds)
    say = console(stderr=arguments.json)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    choice = Choice(
        designs,
        found,
        rows,
        depth=request.depth_asked,
        slice=arguments.slice or "",
        shard=arguments.shard or "",
        promised={design.name: promised_rows(design, found, request) for design in designs},
        newer={each.name: newer_rows(request, found, each) for each in designs if each.spec},
        is_narrowed=request.is_narrowed or request.file is not None,
        repeat=arguments.repeat,
        fail_fast=arguments.fail_fast,
        max_seconds=arguments.max_seconds,
        max_memory_mb=arguments.max_memory_mb,
        formats=arguments.report,
        keep=arguments.keep,
        is_strict=arguments.strict is not None,
        new_limits=[] if in_lane else new_limits(designs, arguments.strict),
        baseline=for_a_run(older, request, found, designs),
        first=First() if in_lane else failed_before(older, arguments.out, rows),
        narrowed=narrowed(request) + as_typed(arguments),
        earlier=arguments.earlier or "",
        required=(arguments.require,) if arguments.require else (),
        specs={design.name: spec for design, spec in zip(designs, given(arguments), strict=True)},
        durations=known,
    )
    if older and arguments.seed is None:
        arguments.seed = older.summary.seed
    if not in_lane:
        ready = [each for each in designs if not _is_prepared(each)]
        note_subjects(choice, ready, arguments.seed)
    arguments.judged_first = choice.first.said
    with own_folder(arguments.out) as out:
        begin_report(arguments.out, out)
        if in_lane:
            with as_lane() as line:
                judge_in_turn(arguments, choice, out, stores, line)
            return 0
        account: RunAccount
        if arguments.lanes > 1:
            account = judge_in_lanes(arguments, choice, out, say)
        else:
            account = judge_in_turn(arguments, choice, out, stores)
    if account.summary is None:
        if account.interrupted:
            raise KeyboardInterrupt
        raise MachineProblem(
            account.problem or f"The run ended early; what was judged is in {out / 'report.jsonl'}."
        )
    return ending(account, account.summary, found, out, as_json=arguments.json)


def _demand_fitting(arguments: argparse.Namespace) -> None:
    """Refuse options of which one makes no sense beside another.

    Raises:
        UsageProblem: There are such options.
    """
    if arguments.store and arguments.lanes > 1:
        raise UsageProblem(
            "--store names one server, which lanes would lock for each other; leave out --lanes."
        )
    if arguments.shard and arguments.seed is None:
        raise UsageProblem("--shard needs a --seed, the same for all shards of a run.")
    demand_whole(arguments)


def note_subjects(choice: Choice, designs: Sequence[Manifest], seed: int) -> None:
    """Note the subjects of these designs, and look whether the baseline has the same.

    A subject that `prepare` makes is there once it has run.

    Raises:
        UsageProblem: A subject is not there, or the baseline is one of something else.
        MachineProblem: A subject is an image, and no container engine has it.
    """
    choice.subjects |= subjects_of(designs)
    for later in designs:
        if earlier := later.previous:
            (subject,) = subjects_of([earlier]).values()
            release = Release(name=earlier.name, version=earlier.version, subject=subject)
            choice.follows[later.name] = release
    if choice.baseline:
        choice.baseline.demand_alike(choice.alike(seed))


def _is_prepared(design: Manifest) -> bool:
    """Return whether what is judged is there only once a release of it was prepared."""
    return any(release.prepare for release in design.releases)


def narrowed(request: Request) -> str:
    """Return the options on programs and modes, each after a space, as they are typed.

    A row of a scenario that is judged on one program, or in one mode, may be chosen by them alone.
    """
    options = [
        *(f" --program {name}" for name in request.programs),
        *(f" --mode {name}" for name in request.modes),
    ]
    return "".join(options)


def as_typed(arguments: argparse.Namespace) -> str:
    """Return the other options that a row hangs on, each after a space."""
    own = "".join(f" --features {quote(str(place))}" for place in arguments.features)
    return own + (f" --oracle {arguments.oracle}" if arguments.oracle else "")


def new_limits(designs: Iterable[Manifest], baseline: Path | None) -> list[str]:
    """Return what `--strict` says of each limit that is new since an older report.

    A limit is new if the design did not declare it in that report.

    Args:
        designs: The designs as they are now.
        baseline: The report, or the output folder that it is in; without it no limit is new.

    Raises:
        UsageProblem: There is no such report.
    """
    if baseline in {None, options.ALONE}:
        return []
    known = read(file_of(baseline))[1].cannot
    return [
        f"--strict: {design.name} cannot {limit.cannot} ({limit}), which the baseline did not say; "
        f"it takes away that {limit.promise}"
        for design in designs
        for limit in Limit
        if limit in design.cannot and limit not in known.get(design.name, ())
    ]


def judge_in_turn(
    arguments: argparse.Namespace,
    choice: Choice,
    out: Path,
    stores: dict[str, str],
    line: Line | None = None,
) -> Plugin:
    """Judge one row after the other, in this process.

    With a line to another run, judge the rows that this run asks for.
    """
    say = PlainConsole(quiet=True) if line else console(stderr=arguments.json)
    unprepared = [] if line else [design for design in choice.manifests if choice.rows[design.name]]
    plugin: Plugin | None = None
    try:
        with opened_rig(arguments, unprepared, out, say, stores) as rig:
            if line:  # the lanes of a run keep their histories in one folder
                rig.histories = out.parent / HISTORIES
            note_subjects(choice, list(filter(_is_prepared, unprepared)), rig.seed)
            choice.again = f"upheld run --broker {rig.broker.kind}"
            plugin = LanePlugin(rig, choice, line) if line else Plugin(rig, choice, console=say)
            if not line:
                plugin.memory.start()
            _judge_with(plugin, arguments.out, out)
            if line and plugin.problem:
                raise plugin.refused or MachineProblem(plugin.problem)
    except KeyboardInterrupt:
        if plugin is None or plugin.summary is None:  # there is nothing to report
            raise
    return plugin


def _judge_with(plugin: Plugin, given: Path | None, out: Path) -> None:
    """Let pytest judge the rows; a summary is written whatever ends it."""
    try:
        with plugin.progress:
            pytest.main(pytest_arguments(out), plugins=[plugin])
    except OSError as error:
        plugin.problem = plugin.problem or unusable(given, out, error)
    except KeyboardInterrupt:
        plugin.interrupted = True
        if plugin.summary is None:
            plugin.finish()
        raise
    except Exception:
        # A scenario that is cut short may fail at a part that it had not begun.
        if not plugin.interrupted:
            raise


def judge_in_lanes(arguments: argparse.Namespace, choice: Choice, out: Path, say: Console) -> Lanes:
    """Judge in several processes side by side."""
    account = Lanes(choice, out, seed_of(arguments), say)
    command = commands.own_module("upheld", *arguments.argv, "--seed", str(account.seed))
    with run_scope() as run:
        chosen = [design for design in choice.manifests if choice.rows[design.name]]
        demand_early(chosen)
        prepare_all(chosen, run, out)
        note_subjects(choice, list(filter(_is_prepared, chosen)), account.seed)
        with account.progress:
            try:
                account.judge(command, arguments.lanes, run)
            except OSError as error:
                account.problem = account.problem or unusable(arguments.out, out, error)
    if account.refused and account.summary is None:
        raise account.refused
    return account


def ending(
    account: RunAccount, summary: Summary, found: catalogue.Catalogue, out: Path, *, as_json: bool
) -> int:
    """Print the end of a run, and return its exit code."""
    say = account.console
    if as_json:
        print(json.dumps(visible_data(summary.model_dump(mode="json")), indent=2))
    else:
        judged = matrix([(account.choice.results, summary)], found.promises)
        say.print(table(judged, summary.cannot))
        say.print(closing(summary, out, account.choice.results), markup=False)
        print_comparison(say, summary)
        for hint in hints(account.choice.results, kills.load()):
            say.print(hint, markup=False)
        if left_out := account.left_out():
            say.print(left_out, markup=False)
    if account.problem:
        print(f"upheld: {visible(account.problem)}", file=sys.stderr)
    return int(summary.exit_code or (MachineProblem.exit_code if account.problem else 0))


def print_comparison(say: Console, summary: Summary) -> None:
    """Print what became of the rows since the baseline, if there is one."""
    for number, line in enumerate(baseline.lines(summary.baseline) if summary.baseline else ()):
        say.print(visible(f"{'  ' if number else ''}{line}"), markup=False)


def closing(summary: Summary, out: Path, rows: Sequence[RowResult] = ()) -> str:
    """Return a run's last lines: why rows are unsupported, counts, cost and folder."""
    counts = ", ".join(
        f"{number} {verdict}" for verdict, number in summary.verdicts.items() if number
    )
    which = " ".join(filter(None, [summary.depth, *_parts(summary)]))
    judged = ", ".join(
        f"{name} {number} of {summary.promised[name] * summary.repeat}"
        for name, number in summary.judged.items()
    )
    peak_mb = summary.peak_memory_mb
    lines = [
        f"{counts or 'nothing judged'}; judged of promised rows: {judged} ({which}); "
        f"known failures: {summary.known_failures}; guarantees untested: {len(summary.untested)}",
        f"{summary.seconds:.0f} s, median row {summary.median_seconds:.1f} s, "
        f"peak memory {f'{peak_mb} MiB' if peak_mb else 'not measured'}; report in {out}",
    ]
    lines[:0] = [
        *(
            f"{name} {summary.design_versions[name]} takes over from {each.name} {each.version}"
            for name, each in summary.follows.items()
        ),
        *unsupported(rows),
        *pinned(summary.specs, summary.newer),
        *resting(rows),
        *shortened(rows),
    ]
    if summary.cpu_s:
        taken = ", ".join(f"{part} {seconds:.0f}" for part, seconds in summary.cpu_s.items())
        lines.insert(-1, f"CPU-seconds in the rows: {taken}")
    if summary.limits_broken:
        lines.append(f"limits broken: {'; '.join(summary.limits_broken)}")
    if summary.limits_unmeasured:
        lines.append(f"limits not measured, so not kept: {'; '.join(summary.limits_unmeasured)}")
    if summary.partial:
        number = sum(summary.judged.values())
        chosen = sum(summary.chosen.values())
        lines.append(f"partial: {number} of {chosen} rows were judged")
    return "\n".join(lines)


def _parts(summary: Summary) -> Iterator[str]:
    """Go through the words for the part of the depth's rows that was chosen."""
    if summary.slice:
        yield f"and slice {summary.slice}"
    if summary.shard:
        yield f"in shard {summary.shard}"
    if summary.shards:
        yield f"in {summary.shards} shards"


def merge_reports(arguments: argparse.Namespace) -> int:
    """Make one report of several, and return the exit code of the whole."""
    known = catalogue.load()
    older = given_baseline(arguments)
    out = arguments.out or out_folder()
    rows, summary = merge(arguments.folders, out, known, arguments.report, older)
    if arguments.json:
        print(json.dumps(visible_data(summary.model_dump(mode="json")), indent=2))
    else:
        say = console()
        judged = matrix([(rows, summary)], known.promises)
        say.print(table(judged, summary.cannot))
        say.print(closing(summary, out, rows), markup=False)
        print_comparison(say, summary)
    return int(summary.exit_code)
