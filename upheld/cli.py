"""The command line: `upheld run` and its kin. Every problem is one sentence and an exit code, never a traceback."""

import argparse
import contextlib
import gc
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import upheld
from upheld.errors import MachineProblem, Problem, UsageProblem, is_interrupt
from upheld.report import Writer, table
from upheld.spec import catalogue
from upheld.spec.depths import DEFAULT, DEPTHS, share_of
from upheld.spec.selection import Request, chosen_rows, demand_known, rows_of_the_sin
from upheld.ui.console import console, waiting
from upheld.verdicts import Verdict

INTERRUPTED = 130
EXIT_CODES = {
    0: "everything chosen was judged and upheld (or unsupported, which is counted)",
    1: "violated, a known failure that is upheld, or a limit (--max-seconds, --max-memory-mb) broken",
    2: "inconclusive, or fewer rows judged than chosen",
    3: "the harness, the adapter or the machine failed",
    4: "what was typed or written cannot be understood",
    5: "nothing to judge",
    INTERRUPTED: "interrupted; the report is partial and says so",
}
SWEPT = ("ledger", "relay")  # the programs that a sweep has an input for
LEAST_ROOM_BYTES = 1 << 20  # a run writes a hundred times as much: below it there is no use in starting
MOST_REPEATS = 1000
MOST_LANES = 64


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors exit 4, the code of what the user typed."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one sentence."""
        self.exit(UsageProblem.exit_code, f"{self.prog}: {message}. See {self.prog} --help.\n")


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = parser().parse_args(argv)
    arguments.argv = sys.argv[1:] if argv is None else argv
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # an orderly end, as by Ctrl-C
        code: int = arguments.command(arguments)
    except Problem as problem:
        sentence = f"upheld: {problem}"
        print(sentence if sentence.endswith((".", "?")) else f"{sentence}.", file=sys.stderr)
        return problem.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        print(f"upheld: the machine refused: {error.strerror or error}{where}.", file=sys.stderr)
        return MachineProblem.exit_code
    except (KeyboardInterrupt, Exception) as error:  # whatever it is, 1 would read as a verdict
        if is_interrupt(error):
            print("upheld: interrupted", file=sys.stderr)
            return INTERRUPTED
        if sys.flags.dev_mode:
            raise
        said = " ".join(f"{type(error).__name__}: {error}".split())
        print(
            f"upheld: the harness failed ({said}); `python -X dev -m upheld …` shows where.",
            file=sys.stderr,
        )
        return MachineProblem.exit_code
    return code


def parser() -> Parser:
    """Every command with its options."""
    top = Parser(
        prog="upheld",
        description=upheld.__doc__,
        epilog="Each command has its own --help. To begin: upheld run --design plain",
    )
    top.add_argument("--version", action="version", version=upheld.__version__)
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str, epilog: str | None = None
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            help=text,
            description=text,
            epilog=epilog,
            allow_abbrev=False,  # an abbreviation in somebody's CI would break with the next option
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.set_defaults(command=run)
        return added

    codes = "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXIT_CODES.items())
    run = command("run", run_designs, "Judge designs on a real Kafka, with real faults.", f"exit codes:\n{codes}")
    run.add_argument(
        "designs",
        nargs="*",
        metavar="DESIGN",
        help="a design to judge, as --design names it; paths stand before the options",
    )
    _designs(run)
    _choice(run)
    _broker(run)
    run.add_argument(
        "--store",
        metavar="KIND=ADDRESS",
        action="append",
        default=[],
        help="a state store of yours, such as redis=redis://localhost:6379/0; what a run writes there it deletes again "
        "(default: a server of our own, from PATH)",
    )
    _seed(run)
    run.add_argument(
        "--shard",
        metavar="K/N",
        help="judge the K-th of N shares of the chosen rows that take about as long; `upheld merge` makes one report of all",
    )
    run.add_argument(
        "--repeat", metavar="N", type=_whole(MOST_REPEATS), default=1, help="judge every row so many times"
    )
    run.add_argument("--fail-fast", action="store_true", help="stop after the first row that fails the run")
    run.add_argument(
        "--max-seconds", metavar="S", type=_positive, help="the run ends, fails, and says what it left out"
    )
    run.add_argument(
        "--max-memory-mb", metavar="MB", type=_whole(10**9), help="the run fails if the whole process tree takes more"
    )
    run.add_argument(
        "--lanes",
        metavar="N",
        type=_whole(MOST_LANES),
        default=1,
        help="judge so many rows side by side, each on a broker of its own: a light design takes less than a core (default: 1)",
    )
    run.add_argument(
        "--json", action="store_true", help="print the summary as JSON instead of the table (progress goes to stderr)"
    )

    listing = command("list", list_rows, "List guarantees, scenarios and rows, and what a design has promised.")
    _designs(listing, default=None)
    _choice(listing)
    listing.add_argument("--json", action="store_true", help="print JSON")

    explain = command("explain", explain_guarantee, "Explain a guarantee: promise, source, scenarios, anomalies.")
    explain.add_argument("guarantee", metavar="ID", help="an id such as G22")
    explain.add_argument("--json", action="store_true", help="print JSON")

    new = command("new", new_design, "Write a complete design that passes `smoke`, to start yours from.")
    new.add_argument("directory", metavar="DIR", type=Path, help="an empty or new folder")

    smoke = command("smoke", smoke_design, "Is the adapter sound? A few records, before the design is judged.")
    _designs(smoke)
    _broker(smoke)
    smoke.add_argument("--json", action="store_true", help="print JSON")

    sweep = command(
        "sweep",
        sweep_design,
        "Kill a design before and after each request that changes something, and judge what comes of it.",
        f"Interrupted, it goes on where it stopped with the same --out and options.\n\nexit codes:\n{codes}",
    )
    _sweep(sweep)

    merge = command(
        "merge",
        merge_reports,
        "Make one report, table and exit code of the shards of a run.",
        f"exit codes are those of the run as a whole:\n{codes}",
    )
    merge.add_argument("folders", metavar="FOLDER", type=Path, nargs="+", help="output folder of `run --shard K/N`")
    merge.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        help="new or empty folder for the report, histories and logs (default: upheld-out/TIME)",
    )
    merge.add_argument("--json", action="store_true", help="print the summary as JSON instead of the table")

    judge = command("judge", judge_history, "Judge a recorded history again, with no broker.")
    judge.add_argument("history", metavar="HISTORY", type=Path, nargs="+", help="history/*.jsonl of a run")
    judge.add_argument("--json", action="store_true", help="print JSON")
    judge.add_argument("--picture", metavar="FILE", type=Path, help="draw what happened when, as SVG; of one history")

    lint = command("lint", lint_features, "Check the features: no scenario is vacuous, no sentence unused.")
    lint.add_argument("--json", action="store_true", help="print JSON")

    command("schema", print_schema, "Print the JSON Schema of the adapter protocol.")

    broker = command("broker", run_broker, "Run the broker in the foreground until Ctrl-C.")
    _broker(broker)
    return top


def _whole(most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 18 and 1 <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {most}")
        return int(text)

    return number


def _positive(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < 1e6:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a positive number below a million")


def _designs(to: argparse.ArgumentParser, default: str | None = "spark") -> None:
    said = f" (default: {default})" if default else ""
    to.add_argument(
        "--design",
        action="append",
        metavar="DESIGN",
        help=f"a path to a design.toml, or a shipped name; repeatable{said}",
    )
    to.set_defaults(default_design=default)


def _choice(to: argparse.ArgumentParser) -> None:
    to.add_argument("--program", action="append", help="only this program, such as ledger; repeatable")
    to.add_argument("--mode", action="append", help="only this mode, such as exactly_once; repeatable")
    to.add_argument(
        "--guarantee", metavar="ID", action="append", default=[], help="only this guarantee, such as G22; repeatable"
    )
    to.add_argument(
        "--only",
        metavar="TAGS",
        help="a Cucumber tag expression, such as '@G22 and not @G22.dies-after-a-commit'",
    )
    to.add_argument(
        "--depth",
        choices=DEPTHS,
        help="how much is judged: quick, core or full (default: core; every match where --only or --guarantee is given)",
    )
    to.add_argument(
        "--slice",
        metavar="K/N",
        help="also the K-th of N fixed parts of the rows that the depth leaves out",
    )
    to.add_argument(
        "--rows",
        metavar="FILE",
        type=Path,
        help="only the rows that a file names, a design and a row's id a line, as in a report",
    )


def _sweep(to: argparse.ArgumentParser) -> None:
    """What is swept, and where it is died."""
    _designs(to, default="plain")
    _broker(to)
    to.add_argument("--program", choices=SWEPT, default="ledger", help="what it runs (default: ledger)")
    to.add_argument(
        "--mode", choices=catalogue.MODES, default="exactly_once", help="how it runs (default: exactly_once)"
    )
    to.add_argument(
        "--points",
        choices=("txn", "all"),
        default="txn",
        help="requests of transactions and commits, or those of starting and stopping too (default: txn)",
    )
    to.add_argument(
        "--late", action="store_true", help="also have each request arrive when a successor has drained the input"
    )
    to.add_argument(
        "--zombie",
        action="store_true",
        help="also stop its sender at each request (SIGSTOP) until a successor has drained the input, and let it go on then",
    )
    to.add_argument(
        "--disk",
        metavar="LIST",
        type=_left,
        default=(),
        help="also die before each rename, unlink and fsync, and each close of a file that was written; whoever comes back "
        "finds its own disk kept, rolled-back to what was synced, or wiped: one of these, or several with commas (Linux)",
    )
    to.add_argument(
        "--depth",
        choices=DEPTHS,
        help="how many of the points: quick is the last request of the second transaction, core that transaction, full all "
        "(default: core; --point chooses among all)",
    )
    to.add_argument(
        "--pairs", action="store_true", help="also die once more at each request of the recovery from a first death"
    )
    to.add_argument(
        "--point",
        metavar="NAME",
        action="append",
        default=[],
        help="only these, such as transaction-2.end_txn.1.after, or 'transaction-2.*'; repeatable",
    )
    _seed(to)
    to.add_argument("--json", action="store_true", help="print the results as JSON (progress goes to stderr)")


def _left(text: str) -> tuple[str, ...]:
    """What becomes of an instance's own disk."""
    from upheld.sweep import LEFT  # noqa: PLC0415

    asked = tuple(dict.fromkeys(text.split(",")))
    if unknown := [each for each in asked if each not in LEFT]:
        raise argparse.ArgumentTypeError(f"there is no disk {unknown[0]!r}; there are {', '.join(LEFT)}")
    return asked


def _seed(to: argparse.ArgumentParser) -> None:
    """What repeats a run, how long it waits, and where it writes."""
    to.add_argument(
        "--seed",
        metavar="N",
        type=int,
        help="makes the records that every row of a run reads (default: a random one, printed)",
    )
    to.add_argument(
        "--time-scale",
        metavar="FACTOR",
        type=_positive,
        default=1.0,
        help="scales deadlines and settle times, never promised tolerances",
    )
    to.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        help="folder for the report, histories and logs (default: upheld-out/TIME, with a link latest)",
    )


def _broker(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "--broker",
        default="auto",
        choices=("auto", "container", "embedded", "external"),
        help="where Kafka comes from (default: auto, which is external with --bootstrap, else a container where "
        "an engine answers and has or can pull the image, else embedded)",
    )
    to.add_argument("--bootstrap", metavar="HOST:PORT", help="a Kafka of yours")
    to.add_argument(
        "--client-properties",
        metavar="FILE",
        type=Path,
        help="how that is reached: security settings by Java's or librdkafka's names",
    )
    to.add_argument("--image", help="another image for --broker container")


def manifests(arguments: argparse.Namespace) -> list[Any]:
    """The designs named, or the default one."""
    from upheld.protocol import manifest  # noqa: PLC0415  (commands that need no design start faster)

    loaded = [manifest.load(name) for name in given(arguments)]
    names = [design.name for design in loaded]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageProblem(f"Two of the designs are named {twice}; give each a name of its own.")
    return loaded


def request_of(arguments: argparse.Namespace) -> Request:
    """What the options choose."""
    if arguments.rows and (arguments.only or arguments.guarantee or arguments.program or arguments.mode):
        raise UsageProblem("--rows names each row; leave out --only, --guarantee, --program and --mode.")
    return Request(
        only=arguments.only,
        guarantees=arguments.guarantee,
        programs=arguments.program or (),
        modes=arguments.mode or (),
        depth=arguments.depth,
        share=share_of(arguments.slice, "--slice") if arguments.slice else None,
        file=arguments.rows,
    )


def promised_rows(design: Any, found: catalogue.Catalogue, request: Request) -> int:
    """How many rows a design is held to at full depth: a wrong one to those of its sin, unless more is asked for."""
    if design.sin and not request.is_narrowed:
        return len(rows_of_the_sin(found, design))
    return len(found.promised(design))


def given(arguments: argparse.Namespace) -> list[str]:
    """The designs as they were named."""
    names = [*getattr(arguments, "designs", ()), *(arguments.design or ())]
    if not names and arguments.default_design:
        names = [arguments.default_design]
    return list(dict.fromkeys(names))


def out_folder(given: Path | None = None) -> Path:
    """Make the output folder; where it is ours to name, one that nobody else has."""
    named = given or Path("upheld-out") / time.strftime("%Y-%m-%dT%H-%M-%S")
    folder, number = named, 1
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=given is not None)
        except OSError as error:
            if given is None and isinstance(error, FileExistsError) and number < MOST_REPEATS:
                number += 1
                folder = named.with_name(f"{named.name}-{number}")
                continue
            raise MachineProblem(_unusable(given, folder, error)) from None
        return folder.resolve()


def begin_report(given: Path | None, out: Path) -> None:
    """Empty what an older run left, and see that there is room, before anything costly; name the folder `latest`."""
    if shutil.disk_usage(out).free < LEAST_ROOM_BYTES:
        raise MachineProblem(f"The disk of {out} is full; make room there, or choose another with --out.")
    try:
        (out / "junit.xml").unlink(missing_ok=True)
        Writer(out).close()
        if given is None:
            link = out.parent / f".latest-{out.name}"
            link.symlink_to(out.name)
            link.replace(out.parent / "latest")
    except OSError as error:
        raise MachineProblem(_unusable(given, out, error)) from None


def _unusable(given: Path | None, folder: Path, error: OSError) -> str:
    elsewhere = "choose another with --out" if given else "start in a folder that can be written"
    return f"The output folder {folder} cannot be written ({error.strerror}); {elsewhere}."


def opened_broker(arguments: argparse.Namespace, run: Any, out: Path) -> Any:
    """The broker that the options choose, answering."""
    from upheld.brokers import open_broker  # noqa: PLC0415

    with waiting("the broker starts"):
        return open_broker(
            arguments.broker,
            run=run,
            log_dir=out / "logs",
            bootstrap=arguments.bootstrap,
            client_properties=arguments.client_properties,
            image=arguments.image,
        )


def prepare_all(designs: list[Any], run: Any, out: Path) -> None:
    """What the designs want to have done once, before they are asked anything."""
    from upheld.supervisor.instance import prepare  # noqa: PLC0415

    for design in designs:
        with waiting(f"{design.name} is prepared"):
            prepare(design, run, out / "logs")


def given_stores(asked: list[str]) -> dict[str, str]:
    """The stores named: kind -> address of one that answers."""
    from upheld.stores import GIVEN  # noqa: PLC0415

    found = {}
    for kind, _, address in (text.partition("=") for text in asked):
        if kind not in GIVEN or not address:
            example = "redis=redis://localhost:6379/0"
            raise UsageProblem(
                f"--store {kind!r} is not KIND=ADDRESS with KIND one of {', '.join(GIVEN)}, as in {example}."
            )
        found[kind] = GIVEN[kind](address)
    return found


@contextlib.contextmanager
def opened_rig(
    arguments: argparse.Namespace, designs: list[Any], out: Path, say: Any, stores: dict[str, str]
) -> Iterator[Any]:
    """A broker that answers and all that is shared on it, these designs prepared; nothing of it is left behind."""
    from upheld.kafka.feed import Feed  # noqa: PLC0415
    from upheld.kafka.reader import Reading  # noqa: PLC0415
    from upheld.supervisor.reaper import RunScope  # noqa: PLC0415
    from upheld.trial.rig import Rig  # noqa: PLC0415

    run, seed = RunScope(), seed_of(arguments)
    rig = broker = None
    try:
        broker = opened_broker(arguments, run, out)
        say.print(
            f"upheld {upheld.__version__}, seed {seed}, broker {broker.kind} {broker.version} ({broker.why})",
            markup=False,
        )
        prepare_all(designs, run, out)
        reading = Reading(broker.bootstrap, broker.client)
        reading.canary(f"upheld-canary-{run.run_id[:6]}")
        rig = Rig(run, broker, reading, Feed(reading.settings, run.run_id), out, seed, arguments.time_scale, stores)
        look_for_garbage_seldom()
        yield rig
    finally:
        if rig:
            rig.close()
        if broker:
            broker.close()
        run.close()


def seed_of(arguments: argparse.Namespace) -> int:
    """The seed given, or a new one."""
    return arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 31)


def look_for_garbage_seldom() -> None:
    """Look for cycles once in a million new objects: a history is tens of thousands that stay, and has no cycles."""
    gc.freeze()
    gc.set_threshold(1_000_000, 50, 100)


def run_designs(arguments: argparse.Namespace) -> int:
    """Judge."""
    from upheld.runner import lanes  # noqa: PLC0415
    from upheld.runner.plugin import Choice  # noqa: PLC0415
    from upheld.runner.shards import shard  # noqa: PLC0415
    from upheld.spec import durations  # noqa: PLC0415

    designs, found, stores = manifests(arguments), catalogue.load(), given_stores(arguments.store)
    demand_known(found, designs)
    if stores and arguments.lanes > 1:
        raise UsageProblem("--store names one server, which lanes would lock for each other; leave out --lanes.")
    request, known = request_of(arguments), durations.load()
    rows = chosen_rows(request, found, designs)
    if not any(rows.values()):
        print(
            "upheld: nothing to judge: no promised row is chosen; `upheld list` shows the rows.",
            file=sys.stderr,
        )
        return 5
    if arguments.shard:
        if arguments.seed is None:
            raise UsageProblem("--shard needs a --seed, the same for all shards of a run.")
        rows = shard(rows, share_of(arguments.shard, "--shard"), known.seconds)
    out, say = out_folder(arguments.out), console(stderr=arguments.json)
    begin_report(arguments.out, out)
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
        repeat=arguments.repeat,
        fail_fast=arguments.fail_fast,
        max_seconds=arguments.max_seconds,
        max_memory_mb=arguments.max_memory_mb,
        specs={design.name: spec for design, spec in zip(designs, given(arguments), strict=True)},
        durations=known,
    )
    if lanes.VARIABLE in os.environ:
        with lanes.lane() as line:
            judge_in_turn(arguments, choice, out, stores, line)
        return 0
    if arguments.lanes > 1:
        account = judge_in_lanes(arguments, choice, out, say)
    else:
        account = judge_in_turn(arguments, choice, out, stores)
    if account.summary is None:
        if account.interrupted:
            raise KeyboardInterrupt
        raise MachineProblem(account.problem or f"The run ended early; what was judged is in {out / 'report.jsonl'}.")
    return ending(account, found, out, as_json=arguments.json)


def judge_in_turn(
    arguments: argparse.Namespace, choice: Any, out: Path, stores: dict[str, str], line: Any = None
) -> Any:
    """Judge one row after the other, here; with a line to a run, those that it asks for."""
    import pytest  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415

    from upheld.runner.lanes import LanePlugin  # noqa: PLC0415
    from upheld.runner.plugin import Plugin  # noqa: PLC0415
    from upheld.runner.plugin import arguments as pytest_arguments  # noqa: PLC0415

    say = Console(quiet=True) if line else console(stderr=arguments.json)
    unprepared = [] if line else [design for design in choice.manifests if choice.rows[design.name]]
    with opened_rig(arguments, unprepared, out, say, stores) as rig:
        choice.again = f"upheld run --broker {rig.broker.kind}"
        gate = LanePlugin(rig, choice, line) if line else Plugin(rig, choice, console=say)
        if not line:
            gate.memory.start()
        look_for_garbage_seldom()
        try:
            with gate.progress:
                pytest.main(pytest_arguments(out), plugins=[gate])
        except OSError as error:
            gate.problem = gate.problem or _unusable(arguments.out, out, error)
        except Exception:
            if not gate.interrupted:  # a scenario that is cut short may fail at what it had not begun
                raise
        if line and gate.problem:
            raise MachineProblem(gate.problem)
    return gate


def judge_in_lanes(arguments: argparse.Namespace, choice: Any, out: Path, say: Any) -> Any:
    """Judge in processes beside each other."""
    from upheld.runner.lanes import Lanes  # noqa: PLC0415
    from upheld.supervisor.reaper import RunScope  # noqa: PLC0415

    account = Lanes(choice, out, seed_of(arguments), say)
    command = [sys.executable, "-m", "upheld.cli", *arguments.argv, "--seed", str(account.seed)]
    with RunScope() as run:
        prepare_all([design for design in choice.manifests if choice.rows[design.name]], run, out)
        with account.progress:
            account.judge(command, arguments.lanes, run)
    if account.refused and account.summary is None:
        raise account.refused
    return account


def ending(gate: Any, found: catalogue.Catalogue, out: Path, *, as_json: bool) -> int:
    """Print the end of a run, and give the exit code that follows."""
    summary, say = gate.summary, gate.console
    if as_json:
        print(summary.model_dump_json(indent=2))
    else:
        promises = {g.id: g.promise for g in found.guarantees.values()}
        say.print(table(gate.choice.results, promises))
        say.print(closing(summary, out), markup=False)
        if left_out := gate.left_out():
            say.print(left_out, markup=False)
    if gate.problem:
        print(f"upheld: {gate.problem}", file=sys.stderr)
    return int(summary.exit_code or (MachineProblem.exit_code if gate.problem else 0))


def closing(summary: Any, out: Path) -> str:
    """The last lines of a run: what was counted, what it cost, where it lies."""
    counts = ", ".join(f"{number} {verdict}" for verdict, number in summary.verdicts.items() if number)
    which = " ".join(filter(None, [summary.depth, *_parts(summary)]))
    judged = ", ".join(
        f"{name} {number} of {summary.promised[name] * summary.repeat}" for name, number in summary.judged.items()
    )
    lines = [
        f"{counts or 'nothing judged'}; judged of promised rows: {judged} ({which}); "
        f"known failures: {summary.known_failures}; guarantees untested: {len(summary.untested)}",
        f"{summary.seconds:.0f} s, median row {summary.median_seconds:.1f} s, "
        f"peak memory {summary.peak_memory_mb} MiB; report in {out}",
    ]
    if summary.cpu_s:
        taken = ", ".join(f"{who} {seconds:.0f}" for who, seconds in summary.cpu_s.items())
        lines.insert(1, f"CPU-seconds in the rows: {taken}")
    if summary.limits_broken:
        lines.append(f"limits broken: {'; '.join(summary.limits_broken)}")
    if summary.partial:
        number, chosen = sum(summary.judged.values()), sum(summary.chosen.values())
        lines.append(f"partial: {number} of {chosen} rows were judged")
    return "\n".join(lines)


def _parts(summary: Any) -> Iterator[str]:
    """What of the depth's rows was chosen, beside them or less."""
    if summary.slice:
        yield f"and slice {summary.slice}"
    if summary.shard:
        yield f"in shard {summary.shard}"
    if summary.shards:
        yield f"in {summary.shards} shards"


def merge_reports(arguments: argparse.Namespace) -> int:
    """Merge."""
    from upheld.runner.shards import merge  # noqa: PLC0415

    out = arguments.out or out_folder()
    rows, summary = merge(arguments.folders, out)
    if arguments.json:
        print(summary.model_dump_json(indent=2))
    else:
        say = console()
        say.print(table(rows, {g.id: g.promise for g in catalogue.load().guarantees.values()}))
        say.print(closing(summary, out), markup=False)
    return int(summary.exit_code)


def list_rows(arguments: argparse.Namespace) -> int:
    """List."""
    found, designs = catalogue.load(), manifests(arguments)
    request = request_of(arguments)
    if not arguments.depth:  # whoever lists wants to see what there is
        request = replace(request, depth="full")
    listing = found.listing(designs, request.chooser(found))
    everything = chosen_rows(Request(depth="full"), found, designs)
    for name, ids in chosen_rows(request, found, designs).items():
        listing["designs"][name] = {"promised": len(everything[name]), "chosen": len(ids), "rows": sorted(ids)}
    if arguments.json:
        print(json.dumps(listing, indent=2))
        return 0
    for row in listing["rows"]:
        print(f"{row['depth']:<5} {row['id']:<70} {row['name']}")
    for untested in listing["untested"]:
        print(f"{'-':<5} {untested['id']:<70} untested: {untested['why']}")
    counts, depths = listing["guarantees"], Counter(row["depth"] for row in listing["rows"])
    each = ", ".join(f"{depths[depth]} {depth}" for depth in DEPTHS)
    print(f"{counts['all']} guarantees, {counts['specified']} specified, {counts['untested']} untested")
    print(f"{len(listing['rows'])} rows ({each}; a depth holds those before it)")
    for name, design in listing["designs"].items():
        print(f"{name} promises {design['promised']} rows; {design['chosen']} of them are chosen here")
    return 0


def explain_guarantee(arguments: argparse.Namespace) -> int:
    """Explain."""
    from upheld.judging.claims import anomalies_of  # noqa: PLC0415

    explanation = catalogue.load().explanation(arguments.guarantee, anomalies_of)
    print(json.dumps(explanation, indent=2) if arguments.json else catalogue.as_text(explanation), end="")
    return 0


def new_design(arguments: argparse.Namespace) -> int:
    """New."""
    from upheld.scaffold import new  # noqa: PLC0415

    new(arguments.directory)
    print(f"{arguments.directory} holds a design; try: upheld smoke --design {arguments.directory}")
    return 0


def smoke_design(arguments: argparse.Namespace) -> int:
    """Smoke."""
    from upheld.runner.smoke import Watch, count, smoke  # noqa: PLC0415
    from upheld.supervisor.reaper import RunScope  # noqa: PLC0415
    from upheld.ui.progress import Progress  # noqa: PLC0415
    from upheld.ui.timeleft import Mean  # noqa: PLC0415

    designs, out = manifests(arguments), out_folder()
    run = RunScope()
    mean = Mean(sum(map(count, designs)))
    try:
        broker = opened_broker(arguments, run, out)
        prepare_all(designs, run, out)
        results = []
        with Progress(console(stderr=arguments.json)) as progress:
            progress.begin(mean.total, mean.seconds)
            for design in designs:
                checks = smoke(design, broker, run, out / "logs", watch=Watch(design.name, progress, mean))
                results += [(design.name, *result) for result in checks]
        broker.close()
    finally:
        run.close()
    if arguments.json:
        print(json.dumps([dict(zip(("design", "check", "ok", "text"), r, strict=True)) for r in results], indent=2))
    return 0 if all(ok for _, _, ok, _ in results) else 1


def sweep_design(arguments: argparse.Namespace) -> int:
    """Sweep."""
    from upheld import sweep  # noqa: PLC0415
    from upheld.injectors.disk import Disk  # noqa: PLC0415
    from upheld.ui.progress import Progress  # noqa: PLC0415

    designs = manifests(arguments)
    if len(designs) > 1:
        raise UsageProblem("One design is swept at a time; give --design once.")
    (design,) = designs
    for asked, offered, what in (
        (arguments.program, design.programs, "program"),
        (arguments.mode, design.modes, "mode"),
    ):
        if asked not in offered:
            raise UsageProblem(f"{design.name} has no {what} {asked}; it has {', '.join(offered)}.")
    out, say = out_folder(arguments.out), console(stderr=arguments.json)
    sides = [*sweep.SIDES, *(side for side in sweep.LATER if getattr(arguments, side))]
    record = sweep.Record(out, design.name, arguments.program, arguments.mode, arguments.points, sides, arguments.disk)
    if record.seed is not None:
        arguments.seed = record.seed
    if arguments.disk and (lacking := Disk.lacking()):
        say.print(f"unsupported   changes to disks: on this machine nobody can be watched ({lacking})", markup=False)
        arguments.disk = ()
    with opened_rig(arguments, designs, out, say, {}) as rig:
        rig.disk = Disk(rig.run.scratch) if arguments.disk else None
        depth = arguments.depth or DEFAULT
        with Progress(say) as progress:
            results = sweep.run(
                rig, design, record, progress, points=arguments.point, depth=depth, is_paired=arguments.pairs
            )
    if arguments.json:
        print(json.dumps([result.model_dump(mode="json") for result in results], indent=2))
    else:
        say.print(sweep.table(results))
        say.print(f"record in {out}", markup=False)
    asked = [f"--{name} {getattr(arguments, name)}" for name in ("program", "mode", "points")]
    asked += [f"--{side}" for side in sides if side in sweep.LATER]
    asked += [f"--disk {','.join(arguments.disk)}"] if arguments.disk else []
    again = f"upheld sweep --broker {rig.broker.kind} --design {given(arguments)[0]} {' '.join(asked)}"
    for result in results:
        if result.verdict is not Verdict.UPHELD:
            say.print(sweep.card(result, again, rig.seed), markup=False)
    return sweep.exit_code(results)


def judge_history(arguments: argparse.Namespace) -> int:
    """Judge again."""
    from upheld.judging.rejudge import judge  # noqa: PLC0415

    look_for_garbage_seldom()
    if arguments.picture and len(arguments.history) > 1:
        raise UsageProblem(f"--picture draws one history, and here are {len(arguments.history)}")
    judgements = []
    for path in arguments.history:
        judgements.append(judge(path, arguments.picture))
        if not arguments.json:
            print(judgements[-1].text, flush=True)
    if arguments.json:
        print(json.dumps([j.model_dump(mode="json") for j in judgements], indent=2))
    codes = {judgement.exit_code for judgement in judgements}
    return next(code for code in (1, 3, 2, 5, 0) if code in codes)  # the worst, as in a run


def lint_features(arguments: argparse.Namespace) -> int:
    """Lint."""
    from upheld import lint  # noqa: PLC0415

    findings = lint.lint()
    print(json.dumps(findings, indent=2) if arguments.json else "\n".join(findings) or "the specification is sound")
    return 1 if findings else 0


def print_schema(_: argparse.Namespace) -> int:
    """Schema."""
    from upheld.protocol.schema import schema  # noqa: PLC0415

    print(json.dumps(schema(), indent=2))
    return 0


def run_broker(arguments: argparse.Namespace) -> int:
    """Broker in the foreground."""
    from upheld.supervisor.reaper import RunScope  # noqa: PLC0415

    out = out_folder()
    run = RunScope()
    try:
        broker = opened_broker(arguments, run, out)
        with contextlib.suppress(KeyboardInterrupt):  # its normal end
            print(f"{broker.kind} {broker.version} answers at {broker.bootstrap}; Ctrl-C ends it", flush=True)
            while not broker.ended(1.0):
                pass
            raise MachineProblem(f"The broker ended by itself; {out / 'logs' / 'broker.log'} has its last words.")
    finally:
        run.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
