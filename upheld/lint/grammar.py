"""The grammar of the sentences: few and short, each with a meaning of its own.

A template is the text of a step definition, with its parameters in braces. A limit that is in the
way is raised by a commit of its own, which lists the new templates.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pytest_bdd import parsers
from pytest_bdd.steps import StepFunctionContext

TEMPLATES_MAX: Final = 120
CHARACTERS_MAX: Final = 80
PARAMETERS_MAX: Final = 4

_TOKEN: Final = re.compile(r"\{[^{}]*\}|[\w%.]+")
_ENDING: Final = re.compile(r"(?<=\w\w\w)(?:ing|ed|s)$")
# Articles, and the verbs that say only when something is so.
_SMALL: Final = frozenset(
    [
        "a",
        "an",
        "the",
        "this",
        "these",
        "that",
        "those",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "has",
        "have",
        "had",
    ]
)


def breaches(definitions: Sequence[StepFunctionContext]) -> Iterator[str]:
    """Yield a finding for each rule of the grammar that a step definition breaks."""
    templates = {found.parser.name: found for found in definitions}
    if len(templates) > TEMPLATES_MAX:
        yield (
            f"steps: {len(templates)} templates of sentences, {TEMPLATES_MAX} at most; let a "
            "sentence of the suite say what the new one says."
        )
    for found in templates.values():
        yield from _form(found)
    yield from _twins(definitions)


def place(definition: StepFunctionContext) -> str:
    """Return the file and line of a step definition, and its text."""
    code = definition.step_func.__code__
    return (
        f"{Path(code.co_filename).name}:{code.co_firstlineno} ({definition.type} "
        f"“{definition.parser.name}”)"
    )


def _form(definition: StepFunctionContext) -> Iterator[str]:
    """A sentence is one literal, as long as a line of a feature, with few parameters."""
    template = definition.parser.name
    where = place(definition)
    if len(template) > CHARACTERS_MAX:
        yield (
            f"{where}: the template has {len(template)} characters, {CHARACTERS_MAX} at most; "
            "say one fact."
        )
    if ")?" in template:
        yield f"{where}: the sentence has an optional group; write two sentences."
    if type(definition.parser) is not parsers.parse:
        yield (
            f"{where}: the sentence is no parsers.parse(“literal”), so no editor finds it; regular "
            "expressions are for parameter types."
        )
        return
    count = len(set(_parameters(template)))
    if count > PARAMETERS_MAX:
        yield f"{where}: the sentence has {count} parameters, {PARAMETERS_MAX} at most; use a table."


def _parameters(template: str) -> list[str]:
    return re.findall(r"\{(\w+)[^{}]*\}", template)


def _twins(definitions: Sequence[StepFunctionContext]) -> Iterator[str]:
    """Two templates that differ by articles, number or tense alone are one sentence."""
    first: dict[tuple[str | None, tuple[str, ...]], StepFunctionContext] = {}
    for found in definitions:
        other = first.setdefault((found.type, skeleton(found.parser.name)), found)
        if other.parser.name != found.parser.name:
            yield f"{place(found)}: the same sentence in other words as {place(other)}; keep one."


def skeleton(template: str) -> tuple[str, ...]:
    """Return the words of a template without articles, number and tense.

    They tell it from others. Of a parameter it is the type.
    """
    words = []
    for token in _TOKEN.findall(template):
        if token.startswith("{"):
            words.append(token.partition(":")[2] or "}")
        elif token.lower() not in _SMALL:
            words.append(_ENDING.sub("", token.lower()).removesuffix("e"))
    return tuple(words)
