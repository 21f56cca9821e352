"""The files for CI systems as data, and their scripts as these systems run them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

ROOT: Final = Path(__file__).parents[2]
SHELL: Final = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
DEADLINE_S: Final = 120.0
_EXPRESSION: Final = re.compile(r"\$\{\{.*?\}\}")


def read(name: str) -> dict[str, Any]:
    """Return a file of the repository that is written in YAML."""
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(ROOT / name)
    return found


def strings(within: object) -> Iterator[str]:
    """Go through the texts in a value, also those of its parts."""
    match within:
        case str():
            yield within
        case Mapping():
            for each in within.values():
                yield from strings(each)
        case list():
            for each in within:
                yield from strings(each)


def step(name: str) -> dict[str, Any]:
    """Return a step of the action by its name."""
    steps: list[dict[str, Any]] = read("action.yml")["runs"]["steps"]
    return next(each for each in steps if each.get("name") == name)


def scripts() -> dict[str, str]:
    """Return the scripts of all files, each by a name of its own."""
    found = {
        f"action {each['name']}": each["run"]
        for each in read("action.yml")["runs"]["steps"]
        if "run" in each
    }
    for name, job in read("ci/gitlab.yml").items():
        for phase in ("before_script", "script"):
            if phase in job:
                found[f"gitlab {name} {phase}"] = "\n".join(job[phase])
    return found


def run(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder with these variables, with upheld on PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [*SHELL, script],
        cwd=folder,
        env=os.environ | {"PATH": path} | variables,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def has_expression(text: str) -> bool:
    """Return whether GitHub would put something into a text before a shell reads it."""
    return bool(_EXPRESSION.search(text))
