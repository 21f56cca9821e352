"""`upheld completion`: the script with which a shell completes what is typed."""

import argparse
from collections.abc import Iterable, Iterator
from typing import Final

import shtab

from upheld.cli import parser
from upheld.cli.options import place
from upheld.judging.meanings import names
from upheld.programs import PROGRAMS
from upheld.protocol.manifest import WRONG, shipped
from upheld.protocol.messages import MODES
from upheld.spec import catalogue

Completer = dict[str, str | dict[str, str]]

DESIGNS: Final = "_upheld_designs"


def print_completion(arguments: argparse.Namespace) -> int:
    """Print the script of a shell."""
    top = parser()
    known = _known()
    for action in _actions(top):
        completer = known.get(action.dest)
        if completer is None and action.type is place:
            completer = shtab.FILE
        if completer is not None and not action.choices:
            vars(action)["complete"] = completer
    print(shtab.complete(top, shell=arguments.shell))
    return 0


def _known() -> dict[str, Completer]:
    """Return what completes an argument, by the name of the argument."""
    found = catalogue.load()
    designs = _designs([name for name in shipped() if not name.startswith(WRONG)])
    return {
        "design": designs,
        "designs": designs,
        "guarantee": _words(found.guarantees),
        "name": _words([*found.guarantees, *sorted(names(found))]),
        "program": _words(PROGRAMS),
        "mode": _words(MODES),
    }


def _actions(top: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Go through the arguments and options of all commands."""
    for action in top._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)


def _words(known: Iterable[str]) -> Completer:
    """Return what completes a word of a list."""
    named = " ".join(known)
    by_line: Completer = shtab.cmd(f"printf '%s\\n' {named}")  # as fish wants it
    return {**by_line, "tcsh": f"`echo {named}`"}


def _designs(known: Iterable[str]) -> Completer:
    """Return what completes a design that ships, or a file."""
    named = " ".join(known)
    function = f'{DESIGNS}() {{\n  compgen -W "{named}" -- "$1"\n  _shtab_compgen_files "$1"\n}}\n'
    return {
        **shtab.FILE,
        "bash": DESIGNS,
        "zsh": f"{{compadd {named}; _files}}",
        "fish": f"(string split ' ' '{named}'; __fish_complete_path (commandline -ct))",
        "preamble": {"bash": function},
    }
