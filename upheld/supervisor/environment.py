"""The environment of a design's processes, and the command that prepares a design."""

import os
import re
import subprocess
from pathlib import Path
from typing import Final, Protocol

from upheld.errors import UsageProblem
from upheld.masking import KNOWN
from upheld.protocol.manifest import Manifest
from upheld.supervisor.log import Log

PREPARE_S: Final = 600.0


class Scope(Protocol):
    """The environment of a run, by which the reaper knows the run's processes."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables to be merged into every child's environment."""


def environment_of(manifest: Manifest, run: Scope) -> dict[str, str]:
    """Return the variables that every process of a design is given.

    The user's variables are among them, but not those that are meant for the harness's own pytest.
    """
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    KNOWN.learn_environment(own | manifest.environment)
    return own | manifest.environment | run.environment


def file_name(design: str) -> str:
    """Return a design's name as a part of file names."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", design)


def prepare(manifest: Manifest, run: Scope, log_dir: Path) -> None:
    """Run a design's `prepare` to its end, if it has one.

    Raises:
        UsageProblem: It fails, or takes too long.
    """
    if not manifest.prepare:
        return
    log_dir.mkdir(parents=True, exist_ok=True)
    log = Log(log_dir / f"{file_name(manifest.name)}-prepare.txt")
    with log.opened() as output:
        try:
            code = subprocess.run(
                manifest.prepare,
                cwd=manifest.folder,
                env=environment_of(manifest, run),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                timeout=PREPARE_S,
                check=False,
            ).returncode
            end = f"ended with exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            end = f"did not end within {PREPARE_S:.0f} s"
        except (OSError, ValueError) as error:
            end = f"cannot be run ({getattr(error, 'strerror', None) or error})"
    log.close()
    if end:
        raise UsageProblem(f"{manifest.file}: `prepare` {end}; {log.path} says why.")
