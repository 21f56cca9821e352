"""`upheld contract`: show what was understood of an application and its model."""

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from upheld.cli.rehearsal import Example, examples
from upheld.errors import UsageProblem
from upheld.models import Fold, key_of
from upheld.protocol import manifest
from upheld.protocol.inputs import Input
from upheld.protocol.manifest import FILE_NAME, Manifest
from upheld.protocol.model_file import Loaded, is_place, load_model
from upheld.protocol.subject import ITSELF, OutputTable, Subject
from upheld.reading import is_file
from upheld.text import visible, visible_data

SHOWN_CHARS: Final = 160  # of a record or an answer


def show_contract(arguments: argparse.Namespace) -> int:
    """Print the contract of an application, and what its model answers to its samples.

    Raises:
        UsageProblem: The design or the model cannot be loaded, or the model fails.
    """
    design, model = _named(arguments.what, arguments.design)
    tried = examples(design) if design and model else []
    if arguments.json:
        shown = _first_of_each(tried, arguments.examples)
        print(json.dumps(visible_data(_data(design, model, shown)), indent=2))
        return 0
    for line in _lines(design, model, tried, arguments.examples):
        print(line)
    return 0


def _named(what: str, folder: str | None) -> tuple[Manifest | None, Loaded | None]:
    """Return the design and the model that were named.

    Args:
        what: A design, or a model.
        folder: The folder of a model's design, if that does not lie beside the model.

    Raises:
        UsageProblem: One of them cannot be used, or they do not fit.
    """
    if not is_place(what):
        if folder is not None:
            raise UsageProblem(f"--design goes with a model, such as orders.py:ORDERS, not {what}.")
        design = _of_application(what)
        return design, design.model
    path, _, name = what.rpartition(":")
    file = Path(path).expanduser().absolute()
    model = load_model(f"{file.name}:{name}", file.parent, where="the model")
    if folder is None and not is_file(file.parent / FILE_NAME):
        return None, model
    design = manifest.load(folder or str(file.parent))
    if folder is None and design.application is None:
        return None, model
    design = _of_application(folder or str(file.parent))
    assert design.application
    place = f"{os.path.relpath(file, design.folder)}:{name}"
    subject = design.application.model_copy(update={"oracle": place})
    design = design.model_copy(update={"application": subject})
    return design, design.model


def _of_application(name: str) -> Manifest:
    """Return the design of an application without an adapter."""
    design = manifest.load(name)
    if design.application is None:
        raise UsageProblem(
            f"{design.file}: {design.name} has an adapter, and is judged by the models of "
            "programs; `upheld explain PROGRAM` shows their contracts."
        )
    return design


def _first_of_each(tried: list[Example], count: int) -> list[Example]:
    """Return the first examples of each input."""
    seen = Counter[str]()
    found = list[Example]()
    for each in tried:
        seen[each.record.topic] += 1
        if seen[each.record.topic] <= count:
            found.append(each)
    return found


def _lines(
    design: Manifest | None, model: Loaded | None, tried: list[Example], count: int
) -> Iterator[str]:
    """Go through the lines for a person."""
    for label, said in _facts(design, model).items():
        yield visible(f"{label:<10} {said}")
    if design is None:
        yield f"There is no {FILE_NAME} of an application beside it, so no record was tried."
        return
    for each in _first_of_each(tried, count):
        yield ""
        record = each.record
        yield _short(f"{record.at}  {_text(record.key)}  {_text(record.value)}")
        for answer in each.outputs:
            to = f"{answer.role}  " if _has_several(design) else ""
            yield _short(f"  -> {to}{_text(answer.key)}  {_said(answer.value)}")
        if not each.outputs:
            yield "  -> nothing"
    if tried:
        outputs = [(answer.role, answer.key) for each in tried for answer in each.outputs]
        yield ""
        yield (
            f"{len(tried)} records of the samples were tried, each twice: {len(outputs)} outputs "
            f"of {len(set(outputs))} keys"
        )


def _has_several(design: Manifest) -> bool:
    """Return whether an application has several outputs."""
    return design.application is not None and len(design.application.output) > 1


def _facts(design: Manifest | None, model: Loaded | None) -> dict[str, str]:
    """Return what was understood, by what it is about."""
    found: dict[str, str] = {}
    if design and design.application:
        found["design"] = f"{design.name} {design.version}, {' and '.join(design.modes)}"
        found |= _of_subject(design.application)
    if model is None:
        return found | {"oracle": f"{ITSELF}: right is what it gives without a fault"}
    found["shape"] = model.shape
    found["oracle"] = f"{model.place}, sha256 {model.sha256[:12]}"
    found |= _of_model(model)
    return found


def _of_subject(subject: Subject) -> dict[str, str]:
    return {
        "shape": subject.shape,
        "reads": "; ".join(f"{name}, {_made(each)}" for name, each in subject.input.items()),
        "writes": "; ".join(f"{name}, {_read(table)}" for name, table in subject.output.items()),
        "parameters": f"visible_within_ms {subject.visible_within_ms}",
    }


def _made(described: Input) -> str:
    """Return what the records of an input are made of."""
    key = f", key {described.key}" if described.key else ""
    return f"{described.format}{key}, from {described.sample or described.schema_file}"


def _read(output: OutputTable) -> str:
    """Return how an output is read, and what of it is not compared."""
    ignored = f", without {', '.join(output.ignore)}" if output.ignore else ""
    return f"{output.format}{ignored}"


def _of_model(model: Loaded) -> dict[str, str]:
    """Return what a fold says of its states; a map has none."""
    names = {"inputs": model.model.inputs, "to": model.model.outputs}
    told = {label: ", ".join(each) for label, each in names.items() if each}
    if told.get("inputs"):
        told["inputs"] += ": in any order that keeps that of each partition"
    if not isinstance(model.model, Fold):
        return {"step": _name(model.model.step), **told}
    key = model.model.key
    by = "the key of the record" if key is key_of else _name(key)
    return {
        "step": _name(model.model.step),
        **told,
        "state": f"one for {by}, at first {model.model.initial!r}",
        "outputs": "may skip states" if model.model.may_skip else "show each state",
    }


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _data(design: Manifest | None, model: Loaded | None, tried: list[Example]) -> dict[str, object]:
    examples = [
        {
            "record": each.record.at,
            "key": _text(each.record.key),
            "value": _text(each.record.value),
            "outputs": [
                {"to": answer.role, "key": _text(answer.key), "value": _said(answer.value)}
                for answer in each.outputs
            ],
        }
        for each in tried
    ]
    return {**_facts(design, model), "examples": examples}


def _text(data: bytes | None) -> str:
    return "null" if data is None else data.decode(errors="backslashreplace")


def _said(value: tuple[object, ...]) -> str:
    return ", ".join(map(str, value))


def _short(line: str) -> str:
    return visible(line, SHOWN_CHARS)
