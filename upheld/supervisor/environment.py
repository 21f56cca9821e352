"""The environment of a design's processes, and the command that prepares a design."""

import os
import re
import subprocess
from pathlib import Path
from typing import Final, Protocol

from upheld.errors import UsageProblem
from upheld.masking import KNOWN
from upheld.protocol.manifest import Manifest, commands_of, demand_program
from upheld.protocol.subject import INHERITED
from upheld.supervisor.guarded import Child, Guarded, Spawn
from upheld.supervisor.log import Log
from upheld.supervisor.session import Session

MODULES: Final = "PYTHONPATH"
PREPARE_S: Final = 600.0
# By these variables an engine of containers is found, as its own clients find it.
OF_THE_ENGINE: Final = ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONFIG")


class Scope(Protocol):
    """A run, whose processes end with it."""

    @property
    def spawn(self) -> Spawn:
        """Starts processes of designs."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables to be merged into every child's environment."""

    def containers(self) -> None:
        """Note that containers with the run's label may be started from here on."""


def environment_of(manifest: Manifest, run: Scope) -> dict[str, str]:
    """Return the variables that every process of a design is given.

    The user's variables are among them, but not those that are meant for the harness's own pytest.
    An application without an adapter is given those alone that it inherits.
    """
    own = _callers(manifest)
    subject = manifest.application
    if subject:
        names = {*INHERITED, *subject.inherit, *subject.secrets}
        own = {name: value for name, value in own.items() if name in names}
    return own | manifest.environment | run.environment


def of_a_bridge(manifest: Manifest, run: Scope) -> dict[str, str]:
    """Return the variables of the process that a design's `command` starts.

    The bridge of an application finds the harness where its caller does, and leaves that out of the
    environment of the application. So does what stands for a container, which finds the engine too.
    """
    environment = environment_of(manifest, run)
    names = [MODULES] if manifest.application else []
    names += OF_THE_ENGINE if manifest.images else ()
    return environment | {name: os.environ[name] for name in names if name in os.environ}


def _callers(manifest: Manifest) -> dict[str, str]:
    """Return the variables of the caller, once their secrets are known."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    KNOWN.learn_environment(own | manifest.environment)
    for name in manifest.application.secrets if manifest.application else ():
        if name in own:
            KNOWN.learn(name, own[name], is_secret=True)
    return own


def file_name(design: str) -> str:
    """Return a design's name as a part of file names."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", design)


def prepare(manifest: Manifest, run: Scope, log_dir: Path) -> None:
    """Run a design's `prepare` to its end, if it has one.

    Raises:
        UsageProblem: It fails, takes too long, or has not built the design's program.
    """
    if not manifest.prepare:
        return
    log_dir.mkdir(parents=True, exist_ok=True)
    log = Log(log_dir / f"{file_name(manifest.name)}-prepare.txt")
    with log.opened() as output:
        try:
            child = Child(
                manifest.prepare,
                manifest.folder,
                _callers(manifest) | manifest.environment | run.environment,
                stderr=output,
                stdout=output,
            )
            end = _end_of(run.spawn(child))
        except OSError as error:
            end = f"cannot be run ({error.strerror})"
    log.close()
    if end:
        raise UsageProblem(f"{manifest.file}: `prepare` {end}; {log.path} says why.")
    for field, command in commands_of(manifest):
        demand_program(manifest, field, command)


def _end_of(process: Guarded) -> str:
    """Wait for `prepare`, and end all that it left; return how it failed, or nothing."""
    assert process.stdin
    process.stdin.close()
    try:
        code = process.wait(PREPARE_S)
    except subprocess.TimeoutExpired:
        return f"did not end within {PREPARE_S:.0f} s"
    else:
        return f"ended with exit code {code}" if code else ""
    finally:
        Session.of(process, "prepare").kill()
        process.close()
