"""`upheld explain`: what a name of the suite means. No broker."""

import argparse
import json
import re
from contextlib import suppress
from typing import Final

from upheld.cli import EXIT_CODES
from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.judging.claims import CLAIMS, anomalies_of
from upheld.judging.meanings import Known, Meaning, as_text, meanings, names
from upheld.judging.prerequisites import needs_of
from upheld.protocol.manifest import Manifest, load, shipped
from upheld.spec import catalogue, explain
from upheld.ui.console import width

KINDS: Final = (
    "guarantee, scenario, program, anomaly, check, capability, limit, tag, verdict, mode, shape, "
    "oracle or exit code"
)
_OF_A_GUARANTEE: Final = re.compile(r"@?(G\d|SLA\b).*")


def explain_name(arguments: argparse.Namespace) -> int:
    """Print what each name means; all meanings of a name that has several."""
    name = arguments.name
    found = catalogue.load()
    if name.removeprefix("@").partition(".")[0] in found.guarantees:
        explained = explain.explanation(found, name, anomalies_of, needs_of)
        if arguments.json:
            print(json.dumps(explained.model_dump(mode="json"), indent=2))
        else:
            print(explain.as_text(explained, width()), end="")
        return 0
    meant = _exit_code(name) or meanings(Known(found, _designs()), name.removeprefix("@"))
    if not meant:
        raise UsageProblem(_refused(found, name))
    if arguments.json:
        said = {"name": name, "meanings": [meaning.model_dump() for meaning in meant]}
        print(json.dumps(said, indent=2))
    else:
        print("\n".join(as_text(meaning, width()) for meaning in meant), end="")
    return 0


def _exit_code(name: str) -> list[Meaning]:
    """Return the meaning of a number that is an exit code."""
    code = next((code for code in EXIT_CODES if str(int(code)) == name), None)
    if code is None:
        return []
    said = EXIT_CODES[code]
    return [Meaning(kind="exit code", name=name, sentence=f"{said[0].upper()}{said[1:]}.")]


def _designs() -> list[Manifest]:
    """Return the designs that ship and can be run here."""
    found = list[Manifest]()
    for name in shipped():
        with suppress(UsageProblem):  # it needs a program that this machine lacks
            found.append(load(name))
    return found


def _refused(found: catalogue.Catalogue, name: str) -> str:
    """Return the sentence on a name that has no meaning."""
    if _OF_A_GUARANTEE.fullmatch(name):
        near = did_you_mean(name, found.guarantees)
        return f"{name} is no guarantee.{near} `upheld list` shows all of them."
    sentences = (claim.template for claim in CLAIMS)
    near = did_you_mean(name, {*names(found), *found.guarantees, *sentences})
    return f"{name} is no {KINDS}.{near} `upheld list` shows all guarantees."
