"""The resources that a command needs: an output folder, a broker, stores.

All that rows share is opened here too.
"""

import argparse
import contextlib
import errno
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console

import upheld
from upheld import extras, garbage
from upheld.brokers import Asked, Broker, open_broker
from upheld.brokers.ahead import Ahead
from upheld.cli.choices import seed_of
from upheld.cli.options import LATEST, OUT
from upheld.errors import OF_A_NAME, MachineProblem, UsageProblem
from upheld.guesses import did_you_mean
from upheld.kafka.feed import Feed
from upheld.kafka.reading import Reading
from upheld.masking import KNOWN
from upheld.protocol.manifest import Manifest
from upheld.report import Writer
from upheld.report.folder import HISTORIES, locked
from upheld.report.formats import FORMATS
from upheld.stores import GIVEN
from upheld.supervisor.environment import prepare
from upheld.supervisor.interrupts import held
from upheld.supervisor.namespace import demand_possible
from upheld.supervisor.reaper import RunScope
from upheld.supervisor.subjects import IMAGE, subject_of
from upheld.text import visible
from upheld.trial.rig import Rig
from upheld.ui.console import MANNER, waiting

# A run writes a hundred times as much.
LEAST_ROOM_BYTES = 1 << 20
MOST_FOLDERS = 1000  # of one second
# With these the system refuses a folder that is wrong as it was typed, on any machine.
OF_A_PLACE = {*OF_A_NAME, errno.EEXIST, errno.ENOTDIR}


def out_folder(given: Path | None = None) -> Path:
    """Make the output folder.

    A folder that was not named gets a name that no other run has.

    Raises:
        UsageProblem: The name that was given is none of a folder.
        MachineProblem: The folder cannot be made.
    """
    named = given or OUT / time.strftime("%Y-%m-%dT%H-%M-%S")
    folder = named
    number = 1
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=given is not None)
        except OSError as error:
            if given is not None and error.errno in OF_A_PLACE:
                raise UsageProblem(unusable(given, folder, error)) from None
            if given is None and isinstance(error, FileExistsError) and number < MOST_FOLDERS:
                number += 1
                folder = named.with_name(f"{named.name}-{number}")
                continue
            raise MachineProblem(unusable(given, folder, error)) from None
        return folder.resolve()


@contextlib.contextmanager
def own_folder(given: Path | None) -> Iterator[Path]:
    """Make the output folder, and keep every other run out of it.

    Raises:
        UsageProblem: Another run has it, or it holds files that no run wrote.
        MachineProblem: The disk is full, or the folder cannot be written.
    """
    out = out_folder(given)
    if shutil.disk_usage(out).free < LEAST_ROOM_BYTES:
        raise MachineProblem(
            f"The disk of {out} is full; make room there, or choose another with --out."
        )
    with contextlib.ExitStack() as opened:
        try:
            opened.enter_context(locked(out))
        except OSError as error:
            raise MachineProblem(unusable(given, out, error)) from None
        yield out


def begin_report(given: Path | None, out: Path) -> None:
    """Empty the report of an older run in the folder, and link it as `latest`.

    That is done before anything costly. Only a folder that was not named is linked.

    Raises:
        MachineProblem: The folder cannot be written.
    """
    try:
        for each in FORMATS.values():
            (out / each.file).unlink(missing_ok=True)
        Writer(out).close()
    except OSError as error:
        raise MachineProblem(unusable(given, out, error)) from None
    if given is None:
        _link(out)


def _link(out: Path) -> None:
    """Link the folder as `latest`, unless something else has that name.

    Another run may do the same at the same time: the name always leads to one of them.
    """
    latest = out.parent / LATEST.name
    link = out.parent / f".latest-{out.name}"
    with contextlib.suppress(OSError):  # it is a help, and some disks have no links
        link.unlink(missing_ok=True)
        if latest.is_symlink() or not latest.exists():
            link.symlink_to(out.name)
            link.replace(latest)


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
    """Let each design, and the release before it, prepare once, before all else.

    Raises:
        UsageProblem: A design cannot prepare, or has not made the image of a container.
    """
    for design in (release for each in designs for release in each.releases):
        with waiting(f"{design.name} is prepared"):
            prepare(design, run, out / "logs")
        if design.prepare:
            demand_images(design)


def demand_images(design: Manifest) -> None:
    """Demand that the images of an application are there; one that is not is pulled.

    The user is told of the pulling.

    Raises:
        UsageProblem: An image is not to be had, or no container of it can be started here.
    """
    for name, image in design.images.items():
        said = f"{design.file}: `process.{name}.image` is {image}, and"
        if lack := extras.lack("container"):
            raise UsageProblem(f"{said} {lack}.")
        from upheld.brokers.engine import (  # of an extra
            NoContainerError,
            demand_our_network,
            find_image,
        )

        try:
            demand_our_network()
            find_image(image)
        except NoContainerError as reason:
            raise UsageProblem(f"{said} {reason}.") from None


def demand_early(designs: Iterable[Manifest]) -> None:
    """Demand fences, and the images that no `prepare` makes, before anything starts.

    Raises:
        UsageProblem: A fence cannot be made here, an image is not to be had, or no container of it
            can be started here.
    """
    releases = [release for each in designs for release in each.releases]
    demand_possible(releases)
    for design in releases:
        if not design.prepare:
            demand_images(design)


def subjects_of(designs: Iterable[Manifest]) -> dict[str, str]:
    """Return the digest of what is judged, by design.

    Raises:
        UsageProblem: A file or a folder is not there.
        MachineProblem: It is an image, and no container engine has it.
    """
    return {design.name: _subject_of(design) for design in designs}


def _subject_of(design: Manifest) -> str:
    """Return the digest of what is judged: of an application of one image it is that image."""
    if design.subject and design.subject.startswith(IMAGE):
        return _image_of(design, design.subject.removeprefix(IMAGE), "subject")
    images = design.images
    parts = design.application.process if design.application else {}
    if design.subject is None and len(images) == len(parts) and len(set(images.values())) == 1:
        demand_images(design)
        name, image = next(iter(images.items()))
        return _image_of(design, image, f"process.{name}.image")
    return subject_of(design)


def _image_of(design: Manifest, name: str, field: str) -> str:
    said = f"{design.file}: `{field}` is the image {name!r}, and"
    if lack := extras.lack("container"):
        raise MachineProblem(f"{said} {lack}.")
    from upheld.brokers.engine import NoContainerError, image_id  # of an extra

    try:
        return image_id(name)
    except NoContainerError as reason:
        raise MachineProblem(f"{said} {reason}.") from None


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
                f"{example}.{did_you_mean(kind, GIVEN)}"
            )
        KNOWN.learn(kind, address)
        found[kind] = GIVEN[kind](address)
    return found


@contextlib.contextmanager
def run_scope() -> Iterator[RunScope]:
    """Yield a new run; nothing of it is left at the end, whatever interrupts that."""
    with held():
        run = RunScope()
    try:
        yield run
    finally:
        with held():
            run.close()


@contextlib.contextmanager
def opened_rig(
    arguments: argparse.Namespace,
    designs: list[Manifest],
    out: Path,
    say: Console,
    stores: dict[str, str],
) -> Iterator[Rig]:
    """Open a broker that answers, and all that rows share on it.

    The designs are prepared. Nothing is left behind at the end. A step of the end that is
    interrupted does not keep the others from being taken.
    """
    seed = seed_of(arguments)
    demand_early(designs)
    with contextlib.ExitStack() as opened:
        run = opened.enter_context(run_scope())
        broker = opened_broker(arguments, run, out)
        opened.callback(broker.close)
        if not MANNER.is_terse:
            said = (
                f"upheld {upheld.__version__}, seed {seed}, broker {broker.kind} {broker.version} "
                f"({broker.why}){getattr(arguments, 'judged_first', '')}"
            )
            say.print(visible(said), markup=False)
        prepare_all(designs, run, out)
        reading = Reading(broker.bootstrap, broker.client)
        asked = Asked(arguments.broker, image=arguments.image)

        def another(logs: Path) -> Broker:
            return open_broker(asked, run=run, log_dir=logs)

        rig = Rig(
            run,
            broker,
            reading,
            Feed(reading.settings, run.run_id),
            out,
            seed,
            arguments.time_scale,
            out / HISTORIES,
            stores,
            another=Ahead(another, out / "logs") if broker.ours else None,
        )
        opened.callback(rig.close)
        reading.canary(f"upheld-canary-{run.run_id}")
        garbage.look_seldom()
        yield rig
