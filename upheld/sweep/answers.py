"""The claims of a sweep that rest on the answers of an application.

A user is told what of its outputs is compared, before the first run.
"""

from dataclasses import replace
from typing import NamedTuple

from upheld.history import History
from upheld.history.events import Answered, Application
from upheld.programs.itself import Itself
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
    assert application.contract
    oracle = Itself(history, application.name, application.contract)
    masks = dict.fromkeys(application.contract.ignore, "as declared")
    for answer in history.of(Answered):
        for path in answer.unstable:
            masks.setdefault(path, "it differs between two runs without a fault")
    text = f"{subject.manifest.name} is its own oracle: asked without a fault in {seconds:.1f} s"
    if masks:
        said = ", ".join(f"{path} ({why})" for path, why in masks.items())
        text += f"; not compared: {said}"
    if why := _no_prefix(subject, application, oracle):
        claims = {check: said for check, said in subject.claims.items() if check != FOLD}
        subject = replace(subject, claims=claims)
        text += f"; no prefix rule: {why}"
    return Asked(subject, text)


def _no_prefix(subject: Subject, application: Application, oracle: Itself) -> str:
    """Return why the prefix rule is not asked of an application; empty if it is."""
    if not oracle.is_traced:
        return (
            "its keys have more or fewer outputs than inputs, so that nobody can say which outputs "
            "a committed offset covers"
        )
    if subject.manifest.progress != "group" and application.mode != "exactly_once":
        return (
            f'its progress is in no group (progress = "{subject.manifest.progress}"), and its '
            "outputs may lead"
        )
    return ""
