"""The claims of a sweep that rest on the answers of an application.

A user is told what of its outputs is compared, before the first run.
"""

from dataclasses import replace
from typing import NamedTuple

from upheld.history import History
from upheld.history.events import Answered, Application
from upheld.programs.itself import oracles_of
from upheld.sweep.life import Subject

FOLD = "fold"


class Asked(NamedTuple):
    """A subject with the claims that its answers allow, and the text that says so."""

    subject: Subject
    text: str


def asked(subject: Subject, history: History, seconds: float) -> Asked:
    """Return what the answers of an application allow.

    Args:
        subject: The application.
        history: It holds the input and the answers to each wave of it.
        seconds: How long the answers took.
    """
    (application,) = history.of(Application)
    contract = application.contract
    assert contract
    is_one = not contract.further
    masks: dict[str, str] = {}
    untraced = list[str]()
    for oracle in oracles_of(history, application):
        own = oracle.contract
        place = "" if is_one else f"{own.writes} "
        masks |= {f"{place}{path}": "as declared" for path in own.ignore}
        for answer in oracle.history.of(Answered):
            for path in answer.unstable:
                masks.setdefault(f"{place}{path}", "it differs between two runs without a fault")
        if not oracle.is_traced:
            untraced.append(own.writes)
    text = f"{subject.manifest.name} is its own oracle: asked without a fault in {seconds:.1f} s"
    if masks:
        said = ", ".join(f"{path} ({why})" for path, why in masks.items())
        text += f"; not compared: {said}"
    if why := _no_prefix(subject, application, untraced):
        claims = {check: said for check, said in subject.claims.items() if check != FOLD}
        subject = replace(subject, claims=claims)
        text += f"; no prefix rule: {why}"
    return Asked(subject, text)


def _no_prefix(subject: Subject, application: Application, untraced: list[str]) -> str:
    """Return why the prefix rule is not asked of an application; empty if it is."""
    if untraced:
        contract = application.contract
        is_one = contract is None or not contract.further
        whose = "its keys" if is_one else f"the keys of {' and '.join(untraced)}"
        return (
            f"{whose} have more or fewer outputs than inputs, so that nobody can say which outputs "
            "a committed offset covers"
        )
    if subject.manifest.progress != "group" and application.mode != "exactly_once":
        return (
            f'its progress is in no group (progress = "{subject.manifest.progress}"), and its '
            "outputs may lead"
        )
    return ""
