"""Go from a bare Python to a verdict.

This file makes .venv beside itself, installs upheld into it, and runs a command there.

    python3 bootstrap.py                 the main job: judge the PySpark reference (upheld run)
    python3 bootstrap.py run --design …  any upheld command
    python3 bootstrap.py tox …           the tests
    python3 bootstrap.py install         only what the tests need

tox calls `install`, so that all its environments share .venv. This file needs the standard library
only. The packages that it installs are listed in pyproject.toml; jars and a Java come later, when
they are needed.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
STORED = ["--config-settings", "--build-option=--compression=stored"]


def install(extras: str) -> None:
    """Install these extras of pyproject.toml, if they are not there yet.

    A stamp says what the environment holds already, and for which Python.
    """
    stamp = ENVIRONMENT / f"installed-{extras}"
    project = (HERE / "pyproject.toml").read_text()
    needs = f"{sys.version}\n{project}"
    if stamp.is_file() and stamp.read_text() == needs:
        return
    import tomllib  # an older Python has none, and is told so before

    print(
        f"installing into {ENVIRONMENT} (pyspark is 450 MB: a minute or two)",
        file=sys.stderr,
        flush=True,
    )
    if not any(
        made.read_text().startswith(sys.version) for made in ENVIRONMENT.glob("installed-*")
    ):
        # Another Python's, or one that was left half made.
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
    pip = [
        str(PYTHON),
        "-P",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-compile",
    ]
    # pyspark is built here, into a wheel that is unpacked at once: it need not be compressed. What
    # is named gets the setting.
    spark = [*tomllib.loads(project)["project"]["optional-dependencies"]["spark"], *STORED]
    subprocess.run([*pip, "-e", f".[{extras}]", *spark], check=True, cwd=HERE, stdout=sys.stderr)
    stamp.write_text(needs)


def main(arguments: list[str]) -> int:
    """Install packages if any are missing, then become the command."""
    if sys.version_info < (3, 11):  # noqa: UP036 (who runs this may have an older one)
        print(
            f"upheld needs Python 3.11 or later; this is {sys.version.split()[0]}", file=sys.stderr
        )
        return 3
    tests = arguments[:1] in (["tox"], ["install"])
    try:
        install("spark,dev" if tests else "spark")
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"the packages could not be installed: {error}", file=sys.stderr)
        return 3
    if arguments[:1] == ["install"]:
        return 0
    # Nothing is compiled when it is installed: what a process compiles is kept here for all that
    # come after it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(ENVIRONMENT / "pycache")
    program, rest = ("tox", arguments[1:]) if tests else ("upheld", arguments or ["run"])
    path = str(ENVIRONMENT / "bin" / program)
    os.execv(path, [path, *rest])
    return 0  # not reached: this process is the command now


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
