"""Go from a bare Python to a verdict.

This file makes .venv beside itself, installs upheld into it, and runs a command there.

    python3 bootstrap.py                 the main job: judge the PySpark reference (upheld run)
    python3 bootstrap.py run --design …  any upheld command
    python3 bootstrap.py tox …           the tests
    python3 bootstrap.py install         only what the tests need

tox calls `install`, so that all its environments share .venv. This file needs the standard library
only. The packages that it installs are those of the constraints files, byte for byte; jars and a
Java come later, when they are needed.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
# The reference and its rows need these, and the tests need `dev` and `docs` too.
RUN = ("java", "cassandra", "redis", "container", "clock", "schemas", "tls", "spark")
TESTS = (*RUN, "dev", "docs")
# pyspark is built here, into a wheel that is unpacked at once: it need not be compressed.
STORED = "[bdist_wheel]\ncompression = stored\n"


def install(extras: tuple[str, ...]) -> None:
    """Install these extras of pyproject.toml, if they are not there yet.

    A stamp says what the environment holds already, and for which Python.
    """
    stamp = ENVIRONMENT / f"installed-{','.join(extras)}"
    project = (HERE / "pyproject.toml").read_text()
    pins = "".join(file.read_text() for file in sorted(HERE.glob("constraints*.txt")))
    needs = f"{sys.version}\n{project}{pins}"
    if stamp.is_file() and stamp.read_text() == needs:
        return
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
        "--no-deps",  # the files name every package, and their hashes
    ]
    # What is built here is built by the setuptools that the first step has installed. Without that,
    # pip would fetch one of its own, with no hash.
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as stored:
        stored.write(STORED)
        stored.flush()
        environment = os.environ | {"DIST_EXTRA_CONFIG": stored.name}
        for step in steps(extras):
            subprocess.run([*pip, *step], check=True, cwd=HERE, env=environment, stdout=sys.stderr)
    stamp.write_text(needs)


def steps(extras: tuple[str, ...]) -> list[list[str]]:
    """Return the arguments of pip's calls: packages by hash first, upheld last."""
    added = [word for extra in extras for word in ("-r", f"constraints-{extra}.txt")]
    return [
        ["--require-hashes", "-r", "constraints.txt"],
        ["--require-hashes", "--no-build-isolation", *added],
        ["--no-build-isolation", "-e", "."],
    ]


def main(arguments: list[str]) -> int:
    """Install packages if any are missing, then become the command."""
    if sys.version_info < (3, 11):  # noqa: UP036 (who runs this may have an older one)
        print(
            f"upheld needs Python 3.11 or later; this is {sys.version.split()[0]}", file=sys.stderr
        )
        return 3
    tests = arguments[:1] in (["tox"], ["install"])
    try:
        install(TESTS if tests else RUN)
    except (subprocess.CalledProcessError, OSError) as error:
        print(
            f"the packages could not be installed: {error}; if this machine's package index lacks "
            "a version of constraints*.txt, or serves other files, make these anew by "
            "`python tools/constraints.py`",
            file=sys.stderr,
        )
        return 3
    if arguments[:1] == ["install"]:
        return 0
    # Nothing is compiled when it is installed: what a process compiles is kept here for all that
    # come after it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(ENVIRONMENT / "pycache")
    command = [str(ENVIRONMENT / "bin" / "upheld"), *(arguments or ["run"])]
    if tests:
        command = [str(PYTHON), "-P", str(HERE / "tools" / "not_run.py"), *arguments]
    os.execv(command[0], command)
    return 0  # not reached: this process is the command now


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
