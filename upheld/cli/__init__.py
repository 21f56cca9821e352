"""The command line: `upheld run` and its kin.

Every problem is one sentence and an exit code, never a traceback.
"""

import argparse
import sys
from collections.abc import Callable
from pkgutil import resolve_name
from typing import NamedTuple, NoReturn

import upheld
from upheld.cli import options
from upheld.errors import (
    ExitCode,
    MachineProblem,
    Problem,
    UsageProblem,
    harness_failed,
    is_interrupt,
    kept,
    problem_of,
)
from upheld.guesses import did_you_mean
from upheld.supervisor import interrupts
from upheld.text import sentence, visible
from upheld.ui import streams
from upheld.ui.console import MANNER

INTERRUPTED = ExitCode.INTERRUPTED
SHOWN_CHARS = 200  # of a command that there is not
EXIT_CODES = {
    ExitCode.UPHELD: "everything chosen was judged and upheld (or unsupported, which is counted)",
    ExitCode.VIOLATED: (
        "violated, a known failure that is upheld, a limit (--max-seconds, --max-memory-mb) "
        "broken, with --baseline a row that got worse, or with --strict a row that is unsupported "
        "and nowhere declared so, or a limit of an engine (cannot) that is new"
    ),
    ExitCode.INCONCLUSIVE: (
        "inconclusive, fewer rows judged than chosen, or a limit that could not be measured"
    ),
    ExitCode.HARNESS_FAILED: (
        "the harness, the adapter or the machine failed, or the output could not be written"
    ),
    ExitCode.USAGE: "what was typed or written cannot be understood",
    ExitCode.NOTHING_JUDGED: "nothing to judge",
    ExitCode.INTERRUPTED: (
        "interrupted (Ctrl-C, SIGTERM, SIGHUP); the report is partial and says so"
    ),
}

_CODES = "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXIT_CODES.items())


DESCRIPTION = (
    "upheld: an executable specification of what a Kafka stream processor must guarantee, and its "
    "judge."
)


class Command(NamedTuple):
    """One command.

    Attributes:
        target: Its module and function, imported when it is asked for.
        add_options: Adds its options to a parser.
        purpose: What it is for, in a sentence.
        epilog: What `--help` ends with.
    """

    target: str
    add_options: Callable[[argparse.ArgumentParser], None]
    purpose: str
    epilog: str | None = None


COMMANDS = {
    "run": Command(
        "run:run_designs",
        options.run_options,
        "Judge designs on a real Kafka, with real faults.",
        f"exit codes:\n{_CODES}",
    ),
    "list": Command(
        "listing:list_promises",
        options.listing_options,
        "List guarantees by family, with the verdicts of the last run, or rows; and what a design "
        "has promised.",
    ),
    "explain": Command(
        "explaining:explain_name",
        options.explain_options,
        "Explain a guarantee, a scenario, a program, an anomaly, a check or an exit code.",
    ),
    "new": Command(
        "designs:new_design",
        options.new_options,
        "Write a complete design that passes `smoke`, or an application without an adapter, to "
        "start yours from.",
    ),
    "smoke": Command(
        "designs:smoke_design",
        options.smoke_options,
        "Is the adapter sound? A few records, before the design is judged.",
        f"exit codes; an adapter of which a check fails ends it with 3:\n{_CODES}",
    ),
    "doctor": Command(
        "doctor:visit_design",
        options.doctor_options,
        "Start an application without an adapter once, and say what it does and what is wrong.",
        "exit codes:\n"
        "  0    it can be judged\n"
        "  1    something would make verdicts wrong\n"
        "  3    the machine or the harness failed\n"
        "  4    what was typed or written cannot be understood\n"
        "  130  interrupted",
    ),
    "contract": Command(
        "contracts:show_contract",
        options.contract_options,
        "Show what was understood of an application and of its model, with answers to its samples.",
    ),
    "sweep": Command(
        "sweep:sweep_design",
        options.sweep_options,
        "Kill a design before and after each request that changes something, "
        "and judge what comes of it.",
        "Interrupted, it goes on where it stopped with the same --out and options.\n\n"
        f"exit codes:\n{_CODES}",
    ),
    "merge": Command(
        "run:merge_reports",
        options.merge_options,
        "Make one report, table and exit code of the shards of a run.",
        f"exit codes are those of the run as a whole:\n{_CODES}",
    ),
    "report": Command(
        "reporting:show_reports",
        options.report_options,
        "Show the report of a run, or several side by side: as a table, a page, Markdown or JSON.",
    ),
    "judge": Command(
        "replay:judge_history",
        options.judge_options,
        "Judge a recorded history again, with no broker.",
    ),
    "lint": Command(
        "lint:lint_features",
        options.lint_options,
        "Check the features: no scenario is vacuous, no sentence unused.",
    ),
    "schema": Command(
        "schemas:print_schema",
        options.schema_options,
        "Print the JSON Schema of the adapter protocol, of design.toml, a report, a history or the "
        "records of a program; or envelope.proto.",
    ),
    "sample": Command(
        "sampling:print_records",
        options.sample_options,
        "Print the records that are made of your samples or of your schema, without a broker.",
    ),
    "broker": Command(
        "broker:run_broker",
        options.broker_options,
        "Run the broker in the foreground until Ctrl-C.",
    ),
    "completion": Command(
        "completing:print_completion",
        options.completion_options,
        "Print the script with which a shell completes commands, options and names.",
        'To use it: eval "$(upheld completion bash)" in ~/.bashrc; for zsh, write it into a file '
        "_upheld on $fpath;\nfor fish, into ~/.config/fish/completions/upheld.fish; for tcsh, "
        "source it in ~/.tcshrc.",
    ),
}


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors exit 4, the code of what the user typed."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one sentence."""
        said = f"{self.prog}: {sentence(visible(message))} See {self.prog} --help.\n"
        self.exit(UsageProblem.exit_code, said)


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code, whatever becomes of its output."""
    with streams.lasting() as lost, interrupts.heard():
        if said := lost():
            _say(said)
            return MachineProblem.exit_code
        code = _run(sys.argv[1:] if argv is None else argv)
        if said := lost():
            _say(said)
            return code or MachineProblem.exit_code
    return code


def _run(argv: list[str]) -> int:
    """Run one command; returns its exit code. Each problem is said in a sentence."""
    try:
        arguments = parsed(argv)
        MANNER.is_terse = getattr(arguments, "quiet", False)
        run: Callable[[argparse.Namespace], int] = resolve_name(arguments.command)
        return run(arguments)
    except Problem as problem:
        _say(str(problem))
        return problem.exit_code
    except SystemExit as ended:  # argparse has said why
        return int(ended.code or 0)
    except (KeyboardInterrupt, Exception) as error:  # an exit code of 1 would read as a verdict
        if is_interrupt(error):
            print("upheld: interrupted", file=sys.stderr)
            return INTERRUPTED
        if known := problem_of(error):
            _say(str(known))
            return known.exit_code
        if sys.flags.dev_mode:
            raise
        _say(harness_failed(error, kept(error)))
        return MachineProblem.exit_code


def parsed(argv: list[str]) -> argparse.Namespace:
    """Return what was typed; a misspelt command or option is refused with a guess."""
    top = parser()
    if argv and argv[0] not in {*COMMANDS, *options.names(top)}:
        first = visible(argv[0], SHOWN_CHARS)
        what, known = (
            ("option", options.names(top)) if first.startswith("-") else ("command", [*COMMANDS])
        )
        near = did_you_mean(first, known)
        top.error(f"there is no {what} {first!r}; there are {', '.join(known)}.{near}")
    arguments, unknown = top.parse_known_args(argv)
    if unknown:
        guesses = (
            did_you_mean(word.partition("=")[0], options.names(arguments.parser))
            for word in unknown
            if word.startswith("-")
        )
        guess = next(filter(None, guesses), "")
        arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}.{guess}")
    arguments.argv = argv
    return arguments


def _say(said: str) -> None:
    print(f"upheld: {sentence(said)}", file=sys.stderr)


def parser() -> Parser:
    """Return the parser of every command."""
    top = Parser(
        prog="upheld",
        description=DESCRIPTION,
        epilog="Each command has its own --help. To begin: upheld run --design plain",
    )
    top.add_argument("--version", action="version", version=upheld.__version__)
    parsers = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        added = parsers.add_parser(
            name,
            help=command.purpose,
            description=command.purpose,
            epilog=command.epilog,
            allow_abbrev=False,  # a new option would break an abbreviation in a script
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_options(added)
        added.set_defaults(command=f"upheld.cli.{command.target}", parser=added)
    return top
