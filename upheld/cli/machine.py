"""The resources that a command needs: an output folder, a broker, stores.

All that rows share is opened here too.
"""

import argparse
import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

import upheld
from upheld.brokers import Asked, Broker, open_broker
from upheld.cli.choices import look_for_garbage_seldom, seed_of
from upheld.errors import MachineProblem, UsageProblem
from upheld.kafka.feed import Feed
from upheld.kafka.reading import Reading
from upheld.masking import KNOWN
from upheld.protocol.manifest import Manifest
from upheld.report import Writer
from upheld.stores import GIVEN
from upheld.supervisor.environment import prepare
from upheld.supervisor.reaper import RunScope
from upheld.text import visible
from upheld.trial.rig import Rig
from upheld.ui.console import waiting

# A run writes a hundred times as much.
LEAST_ROOM_BYTES = 1 << 20
MOST_FOLDERS = 1000  # of one second


def out_folder(given: Path | None = None) -> Path:
    """Make the output folder.

    A folder that was not named gets a name that no other run has.

    Raises:
        MachineProblem: The folder cannot be made.
    """
    named = given or Path("upheld-out") / time.strftime("%Y-%m-%dT%H-%M-%S")
    folder = named
    number = 1
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=given is not None)
        except OSError as error:
            if given is None and isinstance(error, FileExistsError) and number < MOST_FOLDERS:
                number += 1
                folder = named.with_name(f"{named.name}-{number}")
                continue
            raise MachineProblem(unusable(given, folder, error)) from None
        return folder.resolve()


def begin_report(given: Path | None, out: Path) -> None:
    """Empty the report of an older run in the folder, and link it as `latest`.

    That is done before anything costly, as is the look at the room on the disk. Only a folder that
    was not named is linked.

    Raises:
        MachineProblem: The disk is full, or the folder cannot be written.
    """
    if shutil.disk_usage(out).free < LEAST_ROOM_BYTES:
        raise MachineProblem(
            f"The disk of {out} is full; make room there, or choose another with --out."
        )
    try:
        (out / "junit.xml").unlink(missing_ok=True)
        Writer(out).close()
        if given is None:
            link = out.parent / f".latest-{out.name}"
            link.symlink_to(out.name)
            link.replace(out.parent / "latest")
    except OSError as error:
        raise MachineProblem(unusable(given, out, error)) from None


def unusable(given: Path | None, folder: Path, error: OSError) -> str:
    """Return the sentence that says why a folder cannot be written, and the way out."""
    elsewhere = "choose another with --out" if given else "start in a folder that can be written"
    return f"The output folder {folder} cannot be written ({error.strerror}); {elsewhere}."


def opened_broker(arguments: argparse.Namespace, run: RunScope, out: Path) -> Broker:
    """Start or reach the broker that the options choose, until it answers."""
    with waiting("the broker starts"):
        asked = Asked(
            arguments.broker, arguments.bootstrap, arguments.client_properties, arguments.image
        )
        return open_broker(asked, run=run, log_dir=out / "logs")


def prepare_all(designs: list[Manifest], run: RunScope, out: Path) -> None:
    """Let each design prepare once, before it is asked anything."""
    for design in designs:
        with waiting(f"{design.name} is prepared"):
            prepare(design, run, out / "logs")


def given_stores(asked: list[str]) -> dict[str, str]:
    """Return the stores that are named: kind -> address of a server that answers.

    Raises:
        UsageProblem: A store is not KIND=ADDRESS.
    """
    found = {}
    for kind, _, address in (text.partition("=") for text in asked):
        if kind not in GIVEN or not address:
            example = "redis=redis://localhost:6379/0"
            raise UsageProblem(
                f"--store {kind!r} is not KIND=ADDRESS with KIND one of {', '.join(GIVEN)}, as in "
                f"{example}."
            )
        KNOWN.learn(kind, address)
        found[kind] = GIVEN[kind](address)
    return found


@contextlib.contextmanager
def opened_rig(
    arguments: argparse.Namespace,
    designs: list[Manifest],
    out: Path,
    say: Console,
    stores: dict[str, str],
) -> Iterator[Rig]:
    """Open a broker that answers, and all that rows share on it.

    The designs are prepared. Nothing is left behind at the end.
    """
    run = RunScope()
    seed = seed_of(arguments)
    rig = broker = None
    try:
        broker = opened_broker(arguments, run, out)
        say.print(
            visible(
                f"upheld {upheld.__version__}, seed {seed}, broker {broker.kind} {broker.version} "
                f"({broker.why})"
            ),
            markup=False,
        )
        prepare_all(designs, run, out)
        reading = Reading(broker.bootstrap, broker.client)
        reading.canary(f"upheld-canary-{run.run_id[:6]}")
        rig = Rig(
            run,
            broker,
            reading,
            Feed(reading.settings, run.run_id),
            out,
            seed,
            arguments.time_scale,
            stores,
        )
        look_for_garbage_seldom()
        yield rig
    finally:
        if rig:
            rig.close()
        if broker:
            broker.close()
        run.close()
