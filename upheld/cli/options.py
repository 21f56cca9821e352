"""The options of each command.

Modules that need a broker, a design or Kafka's client are imported elsewhere.
"""

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from upheld.errors import OF_A_NAME
from upheld.guesses import did_you_mean
from upheld.protocol.inputs import FORMATS, LINES, MOST_KEYS, MOST_PARTITIONS, MOST_RECORDS
from upheld.protocol.messages import MODES, ComparedWith
from upheld.spec.depths import DEPTHS
from upheld.spec.schemas import SCHEMAS

SWEPT = ("ledger", "relay")  # the programs that a sweep has an input for
MOST_REPEATS = 1000
MOST_LANES = 64
MOST_EXAMPLES = 200  # records that a model is tried with
# The names of `upheld.report.formats`.
REPORTS = ("junit", "html", "markdown", "github", "json", "badge", "messages")
# The names of `upheld.report.baseline.ALIKE`, and `SUBJECT`.
PARTS = ("version", "depth", "seed", "subject")
ORACLES_TO_ASK = get_args(ComparedWith)
PARTS_OF_A_VERDICT = ("relation", "order", "prefix")  # of `upheld.checks.strength`
SHELLS = ("bash", "zsh", "tcsh", "fish")
LARGEST_SEED = (1 << 63) - 1
SHOWN_CHARS = 80
OUT = Path("upheld-out")  # the folder of all runs that name none
LATEST = OUT / "latest"  # a link to the last one of them
ALONE = Path()  # what an option is without the file that it may take
BESIDE = Path("index.html")  # beside the report, unless --html names a file


def whole(most: int) -> Callable[[str], int]:
    """Return the type of an option that is a whole number from 1 to `most`."""

    def number(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 18 and 1 <= int(text) <= most):
            raise argparse.ArgumentTypeError(
                f"{_short(text)} is not a whole number from 1 to {most}"
            )
        return int(text)

    return number


def positive(text: str) -> float:
    """Return a positive number below a million."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < 1e6:
            return float(text)
    raise argparse.ArgumentTypeError(f"{_short(text)} is not a positive number below a million")


def seed(text: str) -> int:
    """Return a whole number of 64 bits."""
    with contextlib.suppress(ValueError):
        if -LARGEST_SEED <= int(text) <= LARGEST_SEED:
            return int(text)
    raise argparse.ArgumentTypeError(
        f"{_short(text)} is not a whole number from -{LARGEST_SEED} to {LARGEST_SEED}"
    )


def place(text: str) -> Path:
    """Return the path of a file or a folder, with the home of a user filled in."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file or a folder is not empty")
    if "\0" in text:
        raise argparse.ArgumentTypeError(f"{_short(text)} holds a character that no name has")
    path = Path(text)
    with contextlib.suppress(RuntimeError):  # the user of `~user` is not known
        path = path.expanduser()
    if str(path).startswith("~"):
        raise argparse.ArgumentTypeError(f"{_short(text)}: there is no such user on this machine")
    try:
        path.stat()
    except OSError as error:
        if error.errno in OF_A_NAME:
            said = f"{_short(text)} is no name of a file: {error.strerror}"
            raise argparse.ArgumentTypeError(said) from None
    return path


def _short(text: str) -> str:
    """Return a text in quotes, as it may stand in a sentence."""
    return repr(text) if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]!r}…"


def one_of(*known: str) -> Callable[[str], str]:
    """Return the type of an option that is one of some words."""

    def word(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(
                f"{_short(text)} is none of {', '.join(known)}.{did_you_mean(text, known)}"
            )
        return text

    return word


def names(parser: argparse.ArgumentParser) -> list[str]:
    """Return the names of the options of a parser, each as it may be typed."""
    return [name for action in parser._actions for name in action.option_strings]


def add_one_of(
    to: argparse.ArgumentParser,
    option: str,
    known: tuple[str, ...],
    purpose: str,
    default: str | None = None,
) -> None:
    """Add an option that is one of some words; another word is refused with a guess."""
    to.add_argument(option, choices=known, type=one_of(*known), default=default, help=purpose)


def add_designs(to: argparse.ArgumentParser, default: str | None = "spark") -> None:
    """Add the option that names designs."""
    said = f" (default: {default})" if default else ""
    to.add_argument(
        "--design",
        action="append",
        metavar="DESIGN",
        help=f"a path to a design.toml, or a shipped name; repeatable{said}",
    )
    to.set_defaults(default_design=default)


def add_json(to: argparse.ArgumentParser) -> None:
    """Add the option that prints JSON."""
    to.add_argument("--json", action="store_true", help="print JSON")


def add_quiet(to: argparse.ArgumentParser) -> None:
    """Add the option that leaves out what is as it should be."""
    to.add_argument(
        "--quiet",
        action="store_true",
        help="print no progress and nothing of what is as it should be; results and problems stay",
    )


def add_programs(to: argparse.ArgumentParser) -> None:
    """Add the options that narrow what a design is asked for, to programs and modes."""
    to.add_argument(
        "--program", action="append", help="only this program, such as ledger; repeatable"
    )
    to.add_argument(
        "--mode", action="append", help="only this mode, such as exactly_once; repeatable"
    )


def add_choice(to: argparse.ArgumentParser) -> None:
    """Add the options that choose rows."""
    _add_choice(to)
    to.add_argument(
        "--rows",
        metavar="FILE",
        type=place,
        help="only the rows that a file names, a design and a row's id a line, as in a report",
    )


def _add_choice(to: argparse.ArgumentParser) -> None:
    add_programs(to)
    to.add_argument(
        "--guarantee",
        metavar="ID",
        action="append",
        default=[],
        help="only this guarantee, such as G22; repeatable",
    )
    to.add_argument(
        "--only",
        metavar="TAGS",
        help="a Cucumber tag expression, such as '@G22 and not @G22.dies-after-a-commit'",
    )
    add_one_of(
        to,
        "--depth",
        DEPTHS,
        "how much is judged: quick, core or full (default: core; every match where --only or "
        "--guarantee is given)",
    )
    to.add_argument(
        "--slice",
        metavar="K/N",
        help="also the K-th of N fixed parts of the rows that the depth leaves out",
    )


def sweep_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `sweep`: what is swept, and where it is to die."""
    add_designs(to, default="plain")
    add_broker(to)
    add_one_of(
        to,
        "--program",
        SWEPT,
        "what it runs (default: the first of these that it has); an application without an adapter "
        "runs its own",
    )
    add_one_of(to, "--mode", MODES, "how it runs (default: exactly_once, if it has that)")
    add_one_of(
        to,
        "--points",
        ("txn", "all"),
        "requests of transactions and commits, or those of starting and stopping too "
        "(default: txn; all of an application without an adapter)",
    )
    to.add_argument(
        "--late",
        action="store_true",
        help="also have each request arrive when a successor has drained the input",
    )
    to.add_argument(
        "--zombie",
        action="store_true",
        help=(
            "also stop its sender at each request (SIGSTOP) until a successor has drained the "
            "input, and let it go on then"
        ),
    )
    to.add_argument(
        "--disk",
        metavar="LIST",
        help="also die before each rename, unlink and fsync, and each close of a file that was "
        "written; whoever comes back "
        "finds its own disk kept, rolled-back to what was synced, or wiped: one of these, or "
        "several with commas (Linux)",
    )
    add_one_of(
        to,
        "--depth",
        DEPTHS,
        "how many of the points: quick is the last request of the second transaction, core "
        "that transaction, full all "
        "(default: core; full of an application without an adapter; --point chooses among all)",
    )
    to.add_argument(
        "--pairs",
        action="store_true",
        help="also die once more at each request of the recovery from a first death",
    )
    to.add_argument(
        "--point",
        metavar="NAME",
        action="append",
        default=[],
        help="only these, such as transaction-2.end_txn.1.after, or 'transaction-2.*'; repeatable",
    )
    add_lanes(to, "meet so many points side by side")
    add_timeouts(to)
    add_seed(to)
    add_quiet(to)
    to.add_argument(
        "--json", action="store_true", help="print the results as JSON (progress goes to stderr)"
    )


def add_lanes(to: argparse.ArgumentParser, does: str) -> None:
    """Add the number of lanes, each on a broker of its own."""
    to.add_argument(
        "--lanes",
        metavar="N",
        type=whole(MOST_LANES),
        default=1,
        help=(
            f"{does}, each on a broker of its own: a light design takes less than a core "
            "(default: 1)"
        ),
    )


def add_timeouts(to: argparse.ArgumentParser) -> None:
    """Add the option that leaves the timeouts of an application as they are."""
    add_one_of(
        to,
        "--timeouts",
        ("shortened", "deployed"),
        "of an application without an adapter that is not told its session or transaction timeout: "
        "the proxy shortens the ones that it asks for, or they stay as deployed, each kill costs "
        "them, and rows that cannot wait are unsupported (default: shortened)",
    )


def add_seed(to: argparse.ArgumentParser) -> None:
    """Add the options that repeat a run, scale its waits and place its output."""
    to.add_argument(
        "--seed",
        metavar="N",
        type=seed,
        help="makes the records that every row of a run reads (default: a random one, printed)",
    )
    to.add_argument(
        "--time-scale",
        metavar="FACTOR",
        type=positive,
        default=1.0,
        help="scales deadlines and settle times, never promised tolerances",
    )
    add_out(
        to,
        "folder for the report, histories and logs (default: upheld-out/TIME, with a link latest)",
    )


def reports(text: str) -> tuple[str, ...]:
    """Return the names of formats, which commas separate; none of an empty text."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in REPORTS:
            one_of(*REPORTS)(name)
    return names


def add_reports(to: argparse.ArgumentParser) -> None:
    """Add the option that says in which formats the report is written too."""
    to.add_argument(
        "--report",
        metavar="LIST",
        type=reports,
        default=("junit", "html"),
        help="what is made of the report, beside report.jsonl: names of "
        f"{', '.join(REPORTS)}, with commas (default: junit,html)",
    )


def add_out(to: argparse.ArgumentParser, purpose: str) -> None:
    """Add the option that names the output folder."""
    to.add_argument("--out", metavar="FOLDER", type=place, help=purpose)


def add_broker(to: argparse.ArgumentParser) -> None:
    """Add the options that say where Kafka comes from."""
    add_one_of(
        to,
        "--broker",
        ("auto", "container", "embedded", "external"),
        "where Kafka comes from (default: auto, which is external with --bootstrap, else a "
        "container where "
        "an engine answers and has or can pull the image, else embedded)",
        "auto",
    )
    to.add_argument("--bootstrap", metavar="HOST:PORT", help="a Kafka of yours")
    to.add_argument(
        "--client-properties",
        metavar="FILE",
        type=place,
        help="how that is reached: security settings by Java's or librdkafka's names",
    )
    to.add_argument("--image", help="another image for --broker container")


def add_releases(to: argparse.ArgumentParser) -> None:
    """Add the options that name two releases."""
    to.add_argument(
        "--from",
        dest="earlier",
        metavar="DESIGN",
        help="the release before the one that --to names, as --design names a design: judge the "
        "rows in which the later one takes over from it",
    )
    to.add_argument(
        "--to",
        dest="later",
        metavar="DESIGN",
        help="the release that takes over from the one that --from names",
    )


def run_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    to.add_argument(
        "designs",
        nargs="*",
        metavar="DESIGN",
        help="a design to judge, as --design names it; paths stand before the options",
    )
    add_designs(to)
    add_releases(to)
    add_choice(to)
    to.add_argument(
        "--features",
        metavar="FOLDER",
        action="append",
        type=place,
        default=[],
        help="also judge scenarios of your own: a folder of features, or one file; repeatable",
    )
    add_broker(to)
    to.add_argument(
        "--store",
        metavar="KIND=ADDRESS",
        action="append",
        default=[],
        help="a state store of yours, such as redis=redis://localhost:6379/0; what a run writes "
        "there it deletes again "
        "(default: a server of our own, from PATH)",
    )
    add_timeouts(to)
    add_seed(to)
    add_reports(to)
    to.add_argument(
        "--keep",
        choices=("failed", "all"),
        default="packed",
        help="which histories stay as they are: those of rows that failed, and no others, or all "
        "(default: those of rows that failed; the others are compressed)",
    )
    to.add_argument(
        "--shard",
        metavar="K/N",
        help=(
            "judge the K-th of N shares of the chosen rows that take about as long; `upheld "
            "merge` makes one report of all"
        ),
    )
    to.add_argument(
        "--repeat",
        metavar="N",
        type=whole(MOST_REPEATS),
        default=1,
        help="judge every row so many times",
    )
    to.add_argument(
        "--fail-fast", action="store_true", help="stop after the first row that fails the run"
    )
    to.add_argument(
        "--max-seconds",
        metavar="S",
        type=positive,
        help="the run ends, fails, and says what it left out",
    )
    to.add_argument(
        "--max-memory-mb",
        metavar="MB",
        type=whole(10**9),
        help="the run fails if the whole process tree takes more",
    )
    to.add_argument(
        "--strict",
        metavar="BASELINE",
        type=place,
        nargs="?",
        const=ALONE,
        help="the run fails if a row is unsupported for a reason that its design.toml does not "
        "declare; with a BASELINE, an older report or the output folder that it is in, also if a "
        "design declares a limit (`cannot`) that it did not have there",
    )
    add_baseline(to)
    add_one_of(
        to,
        "--oracle",
        ORACLES_TO_ASK,
        "compare outputs with those of a run without a fault: `itself` with one of its own, as an "
        "application without a model is; `previous` with one of the release that --from names; a "
        "design that has an adapter is judged on the rows of relay and ledger that allow it",
    )
    add_one_of(
        to,
        "--require",
        PARTS_OF_A_VERDICT,
        "the run fails if a row asks for this and its oracle does not know it, as an application "
        "without a model may not show which input an output comes from",
    )
    add_lanes(to, "judge so many rows side by side")
    add_quiet(to)
    to.add_argument(
        "--json",
        action="store_true",
        help="print the summary as JSON instead of the table (progress goes to stderr)",
    )


def listing_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    add_designs(to, default=None)
    _add_choice(to)
    to.add_argument(
        "--rows",
        metavar="FILE",
        type=place,
        nargs="?",
        const=ALONE,
        help="list rows instead of guarantees; with a FILE only those that it names for a --design",
    )
    add_json(to)


def explain_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `explain`."""
    to.add_argument(
        "name",
        metavar="NAME",
        help="a guarantee such as G22, a scenario or a row of it, a program, an anomaly, a check, "
        "a sentence that judges, a capability, a limit, a tag, a verdict, a mode, the shape or the "
        "oracle of an application, or an exit code",
    )
    add_json(to)


def schema_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `schema`."""
    each = "; ".join(f"{name}: {what}" for name, what in SCHEMAS.items())
    to.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        choices=tuple(SCHEMAS),
        type=one_of(*SCHEMAS),
        default="protocol",
        help=f"what it describes (default: protocol). {each}",
    )


def new_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `new`."""
    to.add_argument("directory", metavar="DIR", type=place, help="an empty or new folder")
    to.add_argument(
        "--application",
        action="store_true",
        help="write an application without an adapter: a design.toml with comments, a small app "
        "and a sample of its input",
    )
    add_quiet(to)
    add_json(to)


def doctor_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `doctor`."""
    to.add_argument(
        "directory",
        metavar="DIR",
        type=place,
        help="the folder of an application, or the design.toml in it",
    )
    to.add_argument(
        "--write",
        action="store_true",
        help="write what was seen, and is missing there, into design.toml; nothing else changes",
    )
    add_one_of(
        to,
        "--broker",
        ("auto", "container", "embedded"),
        "where Kafka comes from (default: auto, which is a container where an engine answers and "
        "has or can pull the image, else embedded)",
        "auto",
    )
    add_out(to, "folder for logs (default: upheld-out/TIME)")
    add_quiet(to)
    add_json(to)


def completion_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `completion`."""
    to.add_argument(
        "shell",
        metavar="SHELL",
        choices=SHELLS,
        type=one_of(*SHELLS),
        help=f"the shell that is to complete: {', '.join(SHELLS)}",
    )


def lint_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `lint`."""
    add_quiet(to)
    add_json(to)


def broker_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `broker`."""
    add_broker(to)
    add_quiet(to)
    to.add_argument("--json", action="store_true", help="print where it answers as a line of JSON")


def sample_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `sample`, which are the fields of an input."""
    to.add_argument(
        "file",
        metavar="FILE",
        type=place,
        help="samples: a file of JSON lines; or a schema, whose name ends with "
        ".json (JSON Schema), .avsc (Avro), .proto, .desc, .binpb or .pb (Protobuf)",
    )
    to.add_argument(
        "--schema",
        metavar="SCHEMA",
        type=place,
        help="the schema by which values of samples are written (default: none)",
    )
    add_one_of(
        to, "--format", FORMATS, "how values are written (default: json, or that of the schema)"
    )
    to.add_argument(
        "--message", metavar="NAME", help="the message of a Protobuf schema (default: its first)"
    )
    add_one_of(
        to,
        "--lines",
        LINES,
        "what a line of the samples is: a value, or a record with key, value and headers "
        "(default: the first line says so)",
    )
    to.add_argument(
        "--key",
        metavar="PATH",
        help="the field that is the key, such as '$.account' (default: the key of each sample)",
    )
    to.add_argument(
        "--keys",
        metavar="N",
        type=whole(MOST_KEYS),
        help="how many keys there are (default: those of the samples, or 64 of a schema)",
    )
    to.add_argument(
        "--skew",
        metavar="EXPONENT",
        type=float,
        default=1.1,
        help="of Zipf's law by which keys are drawn; 0 draws all alike (default: 1.1)",
    )
    to.add_argument(
        "--unique",
        metavar="PATH",
        help="a field that has another value in each record, such as '$.id' (default: none)",
    )
    to.add_argument(
        "--partitions",
        metavar="N",
        type=whole(MOST_PARTITIONS),
        default=4,
        help="the partitions of the topic (default: 4)",
    )
    to.add_argument(
        "--count",
        metavar="N",
        type=whole(MOST_RECORDS),
        default=5,
        help="how many records to print (default: 5)",
    )
    to.add_argument(
        "--seed",
        metavar="N",
        type=seed,
        default=1,
        help="the same seed and options print the same records (default: 1)",
    )


def contract_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `contract`."""
    to.add_argument(
        "what",
        metavar="DIR|FILE.py:NAME",
        help="the folder of an application without an adapter, or a model such as orders.py:ORDERS",
    )
    to.add_argument(
        "--examples",
        metavar="N",
        type=whole(MOST_EXAMPLES),
        default=5,
        help="how many records of each input's samples are shown with the model's answers (5)",
    )
    to.add_argument(
        "--design",
        metavar="DIR",
        help="the folder of the application whose inputs and outputs a model has (beside it)",
    )
    add_json(to)


def smoke_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `smoke`."""
    add_designs(to)
    add_programs(to)
    add_broker(to)
    add_out(to, "folder for the logs (default: upheld-out/TIME)")
    add_quiet(to)
    add_json(to)


def parts(text: str) -> tuple[str, ...]:
    """Return the names of what may differ from a baseline, which commas separate."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        one_of(*PARTS)(name)
    return names


def add_baseline(to: argparse.ArgumentParser) -> None:
    """Add the options that compare a run with an older one."""
    to.add_argument(
        "--baseline",
        metavar="REPORT",
        type=place,
        help="an older report.jsonl, or the output folder that it is in: the run fails if a row "
        "got worse since, or was upheld there and is not judged; what was as bad there does not "
        "fail it",
    )
    to.add_argument(
        "--across",
        metavar="LIST",
        type=parts,
        nargs="?",
        const=PARTS,
        default=(),
        help=f"compare with a baseline that differs in {', '.join(PARTS)}, or in those of them "
        "that are named, with commas",
    )


def merge_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `merge`."""
    to.add_argument(
        "folders",
        metavar="FOLDER",
        type=place,
        nargs="+",
        help="output folder of `run --shard K/N`",
    )
    add_out(to, "new or empty folder for the report, histories and logs (default: upheld-out/TIME)")
    add_reports(to)
    add_baseline(to)
    to.add_argument(
        "--json", action="store_true", help="print the summary as JSON instead of the table"
    )


def report_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `report`."""
    to.add_argument(
        "reports",
        metavar="REPORT",
        type=place,
        nargs="+",
        help="output folder of a run, or its report.jsonl; of several, what differs comes first",
    )
    as_what = to.add_mutually_exclusive_group()
    for name, purpose in {
        "markdown": "print Markdown, with the cards of what failed",
        "github": "print a workflow command of GitHub Actions for each row that failed",
        "junit": "print JUnit's XML, as CI systems read it",
        "json": "print JSON",
        "badge": "print the JSON of a badge, as shields.io reads it",
        "messages": "print Cucumber Messages, an envelope a line",
    }.items():
        as_what.add_argument(
            f"--{name}", dest="format", action="store_const", const=name, help=purpose
        )
    as_what.add_argument(
        "--html",
        metavar="FILE",
        type=place,
        nargs="?",
        const=BESIDE,
        help="write one offline page (default: index.html beside the report)",
    )


def judge_options(to: argparse.ArgumentParser) -> None:
    """Add the options of `judge`."""
    to.add_argument(
        "history", metavar="HISTORY", type=place, nargs="+", help="history/*.jsonl of a run"
    )
    to.add_argument(
        "--model",
        metavar="FILE.py",
        type=place,
        action="append",
        default=[],
        help="the file of the model that judged it, if a user wrote one: it is run, and has to be "
        "as it was",
    )
    add_quiet(to)
    add_json(to)
    to.add_argument(
        "--picture",
        metavar="FILE",
        type=place,
        help="draw what happened when, as SVG; of one history",
    )
