"""The reference design in PySpark: for a harness, or by itself on a Kafka.

    python -m upheld.impl.spark.main
        speaks the adapter's protocol
    spark-submit --jars JARS main.py --bootstrap HOST:PORT --checkpoint FOLDER
        processes until it is ended

JARS are the locked ones: `python -m upheld.brokers.jars impl/spark/jars | paste -sd,` prints them.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, NoReturn

from upheld.adapter import Failed, serve
from upheld.impl.spark.design import Spark
from upheld.impl.spark.program import PROGRAMS


class Arguments(argparse.ArgumentParser):
    """A parser that tells an error in one sentence, with the exit code of bad input."""

    def error(self, message: str) -> NoReturn:
        """Print the error, and exit."""
        self.exit(4, f"{self.prog}: {message}; --help shows what there is\n")


def pair(text: str) -> tuple[str, str]:
    """Return a security property of the command line.

    A text without a value is no property. It is not quoted: it may be a secret.
    """
    name, is_given, value = text.partition("=")
    if not is_given:
        raise argparse.ArgumentTypeError("expected NAME=VALUE")
    return name, value


def start(arguments: list[str]) -> dict[str, Any] | None:
    """Return the request `start` that a command line stands for.

    Returns None if the command line is empty.
    """
    if not arguments:
        return None
    parser = Arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", required=True, help="HOST:PORT of a broker")
    parser.add_argument(
        "--checkpoint", required=True, help="a folder, or the URI of one, that outlives the process"
    )
    parser.add_argument("--program", default="ledger", choices=PROGRAMS)
    parser.add_argument("--mode", default="at_least_once", choices=Spark.hello["modes"])
    parser.add_argument(
        "--reads", help="the input topic (default: the role's name, `entries` for the ledger)"
    )
    parser.add_argument("--beside", help="the second input topic of a join")
    parser.add_argument(
        "--writes", help="the output topic (default: the role's name, `balances` for the ledger)"
    )
    parser.add_argument(
        "--application-id", default="upheld", help="group and transactional id begin with it"
    )
    parser.add_argument("--commit-interval-ms", type=int, default=100)
    parser.add_argument(
        "--threshold", type=int, default=100, help="events that fill a batch of the batcher"
    )
    parser.add_argument(
        "--interval-ms", type=int, default=1_000, help="how long an event waits for its batch"
    )
    parser.add_argument(
        "--several",
        action="store_true",
        help="others run too: one works, and another when that is gone",
    )
    parser.add_argument(
        "--session-timeout-ms",
        type=int,
        default=10_000,
        help="with --several, how long it may be silent",
    )
    parser.add_argument(
        "--client",
        action="append",
        type=pair,
        default=[],
        metavar="NAME=VALUE",
        help="librdkafka's security",
    )
    said = parser.parse_args(arguments)
    program = PROGRAMS[said.program]
    topics = (said.writes, said.reads, said.beside)
    roles = (program.WRITES, *program.READS, *program.BESIDE)
    return {
        "program": said.program,
        "application_id": said.application_id,
        "mode": said.mode,
        "bootstrap": said.bootstrap,
        "client": dict(said.client),
        "topics": {role: topic or role for role, topic in zip(roles, topics, strict=False)},
        "parameters": {
            n: getattr(said, n) for n in ("commit_interval_ms", "threshold", "interval_ms")
        },
        "several": said.several,
        "session_timeout_ms": said.session_timeout_ms,
        "transaction_timeout_ms": 60_000,
        "offset_reset": "earliest",
        "state_dir": tempfile.mkdtemp(prefix="upheld-state-"),
        "durable_dir": said.checkpoint
        if "://" in said.checkpoint
        else str(Path(said.checkpoint).absolute()),
    }


if __name__ == "__main__":
    design = Spark()
    alone = start(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        if alone:
            design.boot()
            design.open(alone)
            does = "runs" if design.running.is_leading else "stands by"
            print(
                f"{alone['program']} {does} as {alone['application_id']}; Ctrl-C ends it",
                file=sys.stderr,
                flush=True,
            )
            design.run(threading.Event())
        else:
            serve(design)
    except Failed as failure:
        sys.exit(f"{failure.kind}: {failure}")
    except KeyboardInterrupt:
        pass
    finally:  # asked to end by a signal: finish the batch and leave no transaction open
        if design.is_open:
            design.close()
        if alone:
            shutil.rmtree(alone["state_dir"], ignore_errors=True)
