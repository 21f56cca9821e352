"""Write upheld/data/schemas: the JSON Schemas that `upheld schema` prints.

    python tools/schemas.py            write the files
    python tools/schemas.py --check    exit with 1 if a file is missing or out of date

Each is valid on its own: it names its dialect, has an id, and refers to nothing outside. They say
what the models say, and a few rules that the models have in code.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import records
from programs import CONTRACTS, named_in
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from upheld.history.digest import Part
from upheld.history.events import EVENT
from upheld.programs import PROGRAMS
from upheld.protocol.capabilities import Capability
from upheld.protocol.inputs import Input
from upheld.protocol.json_path import JsonPath
from upheld.protocol.limits import Limit
from upheld.protocol.manifest import HIDDEN, INHERITED, MUTANT_KEYS, Manifest
from upheld.protocol.messages import (
    PROTOCOL_VERSION,
    REPLIES_TO,
    REPLY,
    REQUEST,
    Failed,
    HelloReply,
    Message,
    Notice,
    Start,
)
from upheld.protocol.subject import CHOSEN_BY_ROWS, ProcessTable, Subject
from upheld.protocol.waivers import Waiver
from upheld.report import FORMAT, RowResult, Summary
from upheld.spec.schemas import FOLDER, path_of

Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# Editors of TOML know this one and older ones.
DIALECT_OF_EDITORS: Final = "http://json-schema.org/draft-07/schema#"
TAGS: Final = ("type", "kind")  # the fields that say what a line is
OF_VERSION_1: Final = ("fenced", "poison", "offset-lost", "conflict", "storage")
FIELDS_OF_VERSION_1: Final = ("type", "kind", "message", "again")
# No control character; and no blank and no mark but . / _ and -, in ASCII. Engines of regular
# expressions differ in `\w` and in `\P{Cc}`, which the models say.
PRINTABLE: Final = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"
NAME: Final = "^[^\\u0000-,:-@\\[-\\^`{-\\u007f]+$"
NO_NAME_BETWEEN_SLASHES: Final = "(^|/)\\.*(/|$)"
# An editor takes the fields of a condition for all that there are, unless others are let in.
_ANYTHING: Final[Schema] = {"additionalProperties": True}
NULL: Final = {"type": "null"}
NO_NUL: Final = "^[^\\u0000]*$"
VARIABLE: Final = "^[^=\\u0000]+$"
PATH: Final = "^[$][.[]"  # to a place in a JSON value


class _Plain(GenerateJsonSchema):
    """The schemas of pydantic without titles that repeat the name of a field."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002
        return False


def schemas() -> dict[str, Schema]:
    """Return each document by its name."""
    return {
        "protocol": protocol(PROTOCOL_VERSION),
        "protocol-1": protocol(1),
        "design": design(),
        "report": report(),
        "history": history(),
        **{name: records_of(name) for name in PROGRAMS},
    }


def protocol(version: int) -> Schema:
    """Return the schema of each line between harness and design."""
    requests, replies = _parts(REQUEST), _parts(REPLY)
    definitions = {
        "Request": requests.pop("") | {"description": "A line that the harness writes."},
        "Reply": replies.pop("") | {"description": "A line that a design writes."},
        **requests,
        **replies,
    }
    said = definitions[HelloReply.__name__]["properties"]["protocol"]
    said["const"] = version
    if version == 1:
        _make_older(definitions)
    return {
        **_head(f"protocol:{version}", f"The adapter protocol, version {version}"),
        "description": (
            "One JSON object a line: requests on standard input, replies on standard output. "
            "A document that refers to #/$defs/Request or #/$defs/Reply takes one direction alone."
        ),
        "anyOf": [{"$ref": "#/$defs/Request"}, {"$ref": "#/$defs/Reply"}],
        "x-replies-to": {
            name_of(request): [*map(name_of, answers), name_of(Failed)]
            for request, answers in REPLIES_TO.items()
        },
        "x-unasked": [name_of(each) for each in (Failed, Notice) if each.__name__ in definitions],
        "$defs": definitions,
    }


def _make_older(definitions: dict[str, Schema]) -> None:
    """Take away what version 2 has added."""
    del definitions[Notice.__name__]
    one_of = definitions["Reply"]["oneOf"]
    one_of.remove({"$ref": f"#/$defs/{Notice.__name__}"})
    del definitions[Start.__name__]["properties"]["group_protocol"]
    failed = definitions[Failed.__name__]
    failed["properties"] = {name: failed["properties"][name] for name in FIELDS_OF_VERSION_1}
    failed["properties"]["kind"]["enum"] = [*OF_VERSION_1]
    del failed["allOf"]


def name_of(message: type[Message]) -> str:
    """Return the type of a message as it stands on the line."""
    return str(message.model_fields["type"].default)


def design() -> Schema:
    """Return the schema of a design.toml, in a dialect that editors know."""
    parts = _without_null(_parts(TypeAdapter(Manifest)))
    manifest = parts.pop(Manifest.__name__)  # which a release before it is too
    del parts[""]
    fields = manifest["properties"]
    for name in HIDDEN:
        if name != "application":
            del fields[name]
    fields["name"] |= {"pattern": NAME, "not": {"pattern": NO_NAME_BETWEEN_SLASHES}}
    fields["version"]["pattern"] = PRINTABLE
    for name in ("command", "prepare"):
        fields[name]["items"]["pattern"] = NO_NUL
    fields["environment"]["propertyNames"] = {"pattern": VARIABLE}
    fields["environment"]["additionalProperties"]["pattern"] = NO_NUL
    _name_words(fields["programs"], _claims())
    _name_words(fields["capabilities"], {each.value: each.sentence for each in Capability})
    _name_words(fields["cannot"], {each.value: f"it cannot {each.cannot}" for each in Limit})
    fields["modes"]["uniqueItems"] = True
    fields["known_failures"] = {
        "type": "string",
        "description": "a file of lines: id, reason, link; these failures do not fail a run",
    }
    first, *others = MUTANT_KEYS
    fields |= dict.fromkeys(others, fields[first])
    fields["extends"] = {
        "type": "string",
        "description": "a design that has what this one leaves out: a path, or a shipped name",
    }
    inherited = [name for name in manifest["required"] if name in INHERITED]
    alone = [*_tables_of_applications(fields, parts), "modes"]
    parts.pop(Waiver.__name__, None)  # they stand in the file that is named
    document = {
        **_head("design", "The design.toml of upheld", DIALECT_OF_EDITORS),
        **manifest,
        "title": "The design.toml of upheld",
        "description": "What a design says of itself, before it runs.",
        "required": ["name", "version"],
        "allOf": [
            _demanding(alone, where=_has("process")),
            _demanding(["group"], where=_all_of(_has("process"), _is_not("progress", "none"))),
            _demanding(["command"], where=_lacks("process")),
            _demanding(inherited, where=_lacks("process", "extends")),
        ],
        "not": _ANYTHING | {"required": [*MUTANT_KEYS]},
        "definitions": parts,
    }
    return _older(document)


def _tables_of_applications(fields: Schema, parts: Schema) -> list[str]:
    """Put the tables of an application where a design.toml has them; return those that it needs."""
    del fields["application"]
    tables = parts.pop(Subject.__name__)
    fields |= tables["properties"]
    parts[ProcessTable.__name__]["anyOf"] = [{"required": ["command"]}, {"required": ["image"]}]
    described = parts[Input.__name__]
    for name in CHOSEN_BY_ROWS:
        del described["properties"][name]
    described["properties"]["topic"]["description"] = (
        "its topic as it is deployed, where names are fixed"
    )
    del described["required"]
    del parts[JsonPath.__name__]
    for name, each in described["properties"].items():
        if JsonPath.__name__ in str(each):
            said = {"description": each["description"]} if "description" in each else {}
            described["properties"][name] = {"type": "string", "pattern": PATH} | said
    return list(tables["required"])


def _has(name: str) -> Schema:
    return _ANYTHING | {"required": [name]}


def _lacks(*names: str) -> Schema:
    return _ANYTHING | {"not": _ANYTHING | {"anyOf": [_has(name) for name in names]}}


def _is_not(name: str, value: str) -> Schema:
    """Return the condition that a field is missing, or has another value."""
    is_so = _ANYTHING | {"properties": {name: {"const": value}}, "required": [name]}
    return _ANYTHING | {"not": is_so}


def _all_of(*conditions: Schema) -> Schema:
    return _ANYTHING | {"allOf": [*conditions]}


def _demanding(names: Sequence[str], *, where: Schema) -> Schema:
    """Return a rule that fields are there where a condition holds."""
    return _ANYTHING | {"if": where, "then": _ANYTHING | {"required": [*names]}}


def _name_words(field: Schema, words: Mapping[str, str]) -> None:
    """Say which words a list may hold, each once; some editors show the sentence of each."""
    field["uniqueItems"] = True
    field["items"] = {
        "type": "string",
        "enum": [*words],
        "x-taplo": {"docs": {"enumValues": [*words.values()]}},
    }


def _claims() -> dict[str, str]:
    """Return the first line of each program's contract."""
    modules = ((import_module(f"upheld.programs.{name}"), name) for name in CONTRACTS)
    return {
        program.name: str(module.__doc__).partition("\n")[0].partition(": ")[2].replace("`", "")
        for module, name in modules
        for program in named_in(name)
    }


def _without_null(part: Any) -> Any:
    """Return a schema without null, which TOML does not have."""
    if isinstance(part, list):
        return [_without_null(each) for each in part]
    if not isinstance(part, Mapping):
        return part
    inner = {key: _without_null(value) for key, value in part.items()}
    if NULL in (others := inner.get("anyOf", [])):
        others.remove(NULL)
        (other,) = inner.pop("anyOf")
        del inner["default"]
        return {**other, **inner}
    return inner


def _older(part: Any) -> Any:
    """Return a schema in the older dialect, in which a reference stands alone."""
    if isinstance(part, list):
        return [_older(each) for each in part]
    if not isinstance(part, Mapping):
        return part
    inner = {key: _older(value) for key, value in part.items()}
    if "$ref" in inner and len(inner) > 1:
        reference = inner.pop("$ref")
        return {**inner, "allOf": [{"$ref": reference.replace("/$defs/", "/definitions/")}]}
    if "$ref" in inner:
        return {"$ref": inner["$ref"].replace("/$defs/", "/definitions/")}
    return inner


def report() -> Schema:
    """Return the schema of each line of a report.jsonl."""
    rows, summary = _parts(TypeAdapter(RowResult)), _parts(TypeAdapter(Summary))
    definitions = {
        RowResult.__name__: rows.pop(""),
        Summary.__name__: summary.pop(""),
        **rows,
        **summary,
    }
    definitions[Summary.__name__]["properties"]["format"]["maximum"] = FORMAT
    return {
        **_head(f"report:{FORMAT}", f"A report of upheld, format {FORMAT}"),
        "description": "A line of report.jsonl: a row, or the summary, which is the last line.",
        "oneOf": [{"$ref": f"#/$defs/{each.__name__}"} for each in (RowResult, Summary)],
        "$defs": definitions,
    }


def history() -> Schema:
    """Return the schema of each line of a history."""
    parts = _parts(EVENT)
    parts[Part.__name__]["description"] = Part.__doc__  # of a named tuple nothing is taken over
    return {
        **_head("history", "A history of upheld"),
        "description": (
            "A line of a history: an event of a scenario, as the harness saw it. The first line is "
            "`begun`, the last one `ended`. A field that is left out has its default."
        ),
        **parts.pop(""),
        "$defs": parts,
    }


def records_of(program: str) -> Schema:
    """Return the schema of the records that a program reads and writes."""
    definitions = records.definitions(program)
    return {
        **_head(f"records:{program}", f"The records of {program}"),
        "description": (
            "A record: the role of its topic, its key as text, and its value. The value alone is "
            "at #/$defs/ROLE/properties/value. The contract of the program says what holds between "
            f"them: `upheld explain {program}`."
        ),
        "oneOf": [{"$ref": f"#/$defs/{role}"} for role in definitions],
        "$defs": definitions,
    }


def _head(name: str, title: str, dialect: str = DIALECT) -> Schema:
    return {"$schema": dialect, "$id": f"urn:upheld:{name}", "title": title}


def _parts(adapter: TypeAdapter[Any]) -> dict[str, Schema]:
    """Return the definitions of a type, and its own schema under an empty name."""
    whole = _tidied(adapter.json_schema(schema_generator=_Plain))
    definitions = whole.pop("$defs", {})
    return {"": whole, **definitions}


def _tidied(part: Any) -> Any:
    """Return a schema in which each line has its tag, and texts are without markup."""
    if isinstance(part, list):
        return [_tidied(each) for each in part]
    if not isinstance(part, Mapping):
        return part
    inner = {key: _tidied(value) for key, value in part.items() if key != "discriminator"}
    if isinstance(inner.get("description"), str):
        inner["description"] = _sentences(inner["description"])
    fields = inner.get("properties")
    if isinstance(fields, dict):
        tags = [tag for tag in TAGS if "const" in fields.get(tag, {})]
        for tag in tags:
            fields[tag] = {"const": fields[tag]["const"], "description": "what this line is"}
        if required := [*tags, *inner.get("required", [])]:
            inner["required"] = required
    return inner


def _sentences(text: str) -> str:
    """Return a docstring as one paragraph a line."""
    paragraphs = re.split(r"\n\n+", text.replace("``", "`"))
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


def as_text(schema: Schema) -> str:
    """Write a document as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def out_of_date() -> Iterator[str]:
    """Yield why the files have to be written again; nothing if they are up to date."""
    texts = {path_of(name): as_text(schema) for name, schema in schemas().items()}
    for path, text in texts.items():
        if not path.exists():
            yield f"{path} is missing"
        elif path.read_text(encoding="utf-8") != text:
            yield f"{path} is out of date"
    yield from (f"{path} is of no schema" for path in FOLDER.iterdir() if path not in texts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or check them; return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1")
    if parser.parse_args(arguments).check:
        found = list(out_of_date())
        print("\n".join(found) or f"{FOLDER} is up to date")
        return int(bool(found))
    FOLDER.mkdir(exist_ok=True)
    for name, schema in schemas().items():
        path_of(name).write_text(as_text(schema), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
