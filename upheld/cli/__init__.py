"""The command line: `upheld run` and its kin.

Every problem is one sentence and an exit code, never a traceback.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable
from pkgutil import resolve_name
from typing import NoReturn

import upheld
from upheld.cli import options
from upheld.errors import MachineProblem, Problem, UsageProblem, is_interrupt

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

Command = Callable[[argparse.Namespace], int]  # returns the exit code


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
        command: Command = resolve_name(arguments.command)
        code = command(arguments)
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
    """Return the parser of every command; a command's own module is imported when it is asked for."""
    top = Parser(
        prog="upheld",
        description=upheld.__doc__,
        epilog="Each command has its own --help. To begin: upheld run --design plain",
    )
    top.add_argument("--version", action="version", version=upheld.__version__)
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(
        name: str, target: str, text: str, epilog: str | None = None
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            help=text,
            description=text,
            epilog=epilog,
            allow_abbrev=False,  # an abbreviation in somebody's CI would break with the next option
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.set_defaults(command=f"upheld.cli.{target}")
        return added

    codes = "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXIT_CODES.items())
    said = f"exit codes:\n{codes}"
    text = "Judge designs on a real Kafka, with real faults."
    options.run_options(command("run", "run:run_designs", text, said))
    text = "List guarantees, scenarios and rows, and what a design has promised."
    options.listing_options(command("list", "listing:list_rows", text))
    text = "Explain a guarantee: promise, source, scenarios, anomalies."
    options.explain_options(command("explain", "listing:explain_guarantee", text))
    text = "Write a complete design that passes `smoke`, to start yours from."
    options.new_options(command("new", "designs:new_design", text))
    text = "Is the adapter sound? A few records, before the design is judged."
    options.smoke_options(command("smoke", "designs:smoke_design", text))
    text = "Kill a design before and after each request that changes something, and judge what comes of it."
    resumed = f"Interrupted, it goes on where it stopped with the same --out and options.\n\n{said}"
    options.sweep_options(command("sweep", "sweep:sweep_design", text, resumed))
    text = "Make one report, table and exit code of the shards of a run."
    whole = f"exit codes are those of the run as a whole:\n{codes}"
    options.merge_options(command("merge", "run:merge_reports", text, whole))
    text = "Judge a recorded history again, with no broker."
    options.judge_options(command("judge", "replay:judge_history", text))
    text = "Check the features: no scenario is vacuous, no sentence unused."
    options.lint_options(command("lint", "lint:lint_features", text))
    command("schema", "listing:print_schema", "Print the JSON Schema of the adapter protocol.")
    options.add_broker(
        command("broker", "broker:run_broker", "Run the broker in the foreground until Ctrl-C.")
    )
    return top
