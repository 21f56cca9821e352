"""Commands and environment of the processes that the harness starts.

The folder in which a user calls the harness may hold anything, a design's files among them. So no
process of the harness takes a module from there, and no program is looked for there. PYTHONPATH is
the user's own word and stays, and so does a virtual environment.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PYTHON: Final = sys.executable
BY_SIGNAL: Final = 128  # from here on an exit code says which signal ended what was run
PACKAGE_ROOT: Final = str(Path(__file__).resolve().parents[1])
# They stop a process for a person, or have it run code, though nobody sits at its terminal.
INTERACTIVE: Final = ("PYTHONBREAKPOINT", "PYTHONINSPECT", "PYTHONSTARTUP")
# The package of the caller is imported, also where another one is installed. Its folder stays out
# of the search path: site-packages would stand before the standard library there.
_RUN: Final = (
    "import runpy, sys; "
    "sys.path.insert(0, sys.argv[1]); import upheld; del sys.path[0]; "
    "name = sys.argv[2]; del sys.argv[1:3]; "
    "runpy.run_module(name, run_name='__main__', alter_sys=True)"
)


def own_module(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this package, as `python -m` does.

    Nothing is imported from the current folder.
    """
    return [PYTHON, "-P", "-c", _RUN, PACKAGE_ROOT, name, *arguments]


def bare_python(*arguments: str) -> list[str]:
    """Return the command of a Python with its standard library alone.

    It reads no variable of the user, and imports no sitecustomize.
    """
    return [PYTHON, "-I", "-S", *arguments]


# Placeholder -> the client property that it stands for, by its name in librdkafka.
CREDENTIALS: Final = {
    "ca_file": "ssl.ca.location",
    "username": "sasl.username",
    "password": "sasl.password",
}


def filled(text: str, names: Mapping[str, str]) -> str:
    """Return a text with each {name} filled in.

    Every other brace stays: an argument may be JSON.
    """
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def program(name: str) -> str | None:
    """Return the absolute path of a program on PATH; None if there is none.

    Entries of PATH that are relative to the current folder are passed over.
    """
    path = _absolute(os.environ.get("PATH", os.defpath))
    return shutil.which(name, path=path) if path else None


def absolute_only(path: str) -> str:
    """Return a PATH without its relative entries; the default one if nothing is left.

    An empty entry means the current folder, and so does an empty PATH.
    """
    return _absolute(path) or os.defpath


def _absolute(path: str) -> str:
    return os.pathsep.join(filter(os.path.isabs, path.split(os.pathsep)))


def isolate() -> None:
    """Take out of this process's environment what leads its children astray.

    Relative entries of PATH go, and empty ones of PYTHONPATH. So do variables for an interactive
    Python.
    """
    for name in INTERACTIVE:
        os.environ.pop(name, None)
    if "PATH" in os.environ:
        os.environ["PATH"] = absolute_only(os.environ["PATH"])
    if "PYTHONPATH" in os.environ:
        named = filter(None, os.environ["PYTHONPATH"].split(os.pathsep))
        os.environ["PYTHONPATH"] = os.pathsep.join(named)


def leave_out_current_folder() -> None:
    """Import nothing more from the current folder, which `python -m` puts first.

    The folder stays if the harness itself lies there, as in a checkout.
    """
    if not sys.flags.safe_path and os.path.realpath(sys.path[0]) != PACKAGE_ROOT:
        del sys.path[0]
