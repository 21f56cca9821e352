"""From a bare Python to a verdict: makes .venv beside this file, installs streamgate into it, runs a command there.

    python3 bootstrap.py                 the main job: judge the PySpark reference (streamgate run)
    python3 bootstrap.py run --design …  any streamgate command
    python3 bootstrap.py tox …           the tests

Standard library only. What it installs is listed in pyproject.toml; jars and a Java come later, when they are needed.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE / ".venv"


def installed(needs: str) -> bool:
    """Whether the environment holds what these pyproject.toml contents ask for, in this Python."""
    stamp = ENVIRONMENT / "installed-for"
    return stamp.is_file() and stamp.read_text() == needs


def install(needs: str, *packages: str) -> None:
    """Make the environment and install; the stamp says for what."""
    print(f"installing into {ENVIRONMENT} (pyspark is 450 MB: a minute or two)", file=sys.stderr, flush=True)
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    pip = [
        str(ENVIRONMENT / "bin" / "python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
    ]
    subprocess.run([*pip, *packages], check=True, cwd=HERE)
    (ENVIRONMENT / "installed-for").write_text(needs)


def main(arguments: list[str]) -> int:
    """Install if need be, then become the command."""
    if sys.version_info < (3, 11):  # noqa: UP036 (who runs this may have an older one)
        print(f"streamgate needs Python 3.11 or later; this is {sys.version.split()[0]}", file=sys.stderr)
        return 3
    needs = f"{sys.version}\n{(HERE / 'pyproject.toml').read_text()}"
    if not installed(needs):
        try:
            install(needs, "-e", ".[spark]", "tox>=4.30")
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"the packages could not be installed: {error}", file=sys.stderr)
            return 3
    program = "tox" if arguments[:1] == ["tox"] else "streamgate"
    rest = arguments[1:] if program == "tox" else (arguments or ["run"])
    path = str(ENVIRONMENT / "bin" / program)
    os.execv(path, [path, *rest])
    return 0  # not reached: this process is the command now


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
