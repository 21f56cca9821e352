"""Write two parts of docs/protocol.md: each message, and a conversation.

    python tools/messages.py            write the parts
    python tools/messages.py --check    exit with 1 if a part is out of date

The fields are those of the schema. The conversation was recorded by `tools/conversation.py`, and so
were the examples; messages that did not come up in it stand here.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import conversation
from pages import DOCS, Part

from upheld.protocol.messages import (
    REPLIES_TO,
    REPLY,
    REQUEST,
    Failed,
    Message,
    Notice,
)
from upheld.spec.schemas import text_of

UNASKED: Final = (Failed, Notice)
PAGE: Final = DOCS / "protocol.md"
MESSAGES: Final = Part("<!-- messages: begin -->\n", "<!-- messages: end -->\n")
TALK: Final = Part("<!-- conversation: begin -->\n", "<!-- conversation: end -->\n")
# Messages that the recorded conversation does not have.
EXAMPLES: Final[Sequence[Mapping[str, Any]]] = (
    {"type": "standing_by"},
    {"type": "error", "definite": True, "message": "the table frequency is not known"},
    {"type": "not_ready"},
    {"type": "workers"},
    {"type": "workers", "pids": [4711, 4712]},
    {"type": "activate", "after": {"talk-1-motors-0": 12, "talk-1-grippers-0": 9}},
    {"type": "deactivate"},
    {"type": "deactivated", "emitted_through": {"talk-1-motors-0": 12, "talk-1-grippers-0": 9}},
    {
        "type": "notice",
        "kind": "offset-reset",
        "topic": "talk-1-motors",
        "partition": 0,
        "from": 3,
        "to": 120,
    },
)


def examples() -> dict[type[Message], Mapping[str, Any]]:
    """Return a message of each type, the longest that was recorded."""
    recorded = [(said.says, said.by == conversation.DESIGN) for said in spoken()]
    others = [(each, _is_reply(each)) for each in EXAMPLES]
    found: dict[type[Message], Mapping[str, Any]] = {}
    for said, is_reply in sorted(recorded + others, key=lambda each: len(json.dumps(each[0]))):
        found[type((REPLY if is_reply else REQUEST).validate_python(said))] = said
    return found


def spoken() -> Iterator[conversation.Said]:
    """Go through the messages of the recorded conversation."""
    return (said for said in conversation.read() if said.by)


def _is_reply(said: Mapping[str, Any]) -> bool:
    requests = {str(each.model_fields["type"].default) for each in REPLIES_TO}
    return said["type"] not in requests or "pids" in said


def messages() -> str:
    """Return the part with all messages: requests, their replies, and the rest."""
    definitions = json.loads(text_of("protocol"))["$defs"]
    said = examples()
    parts = list[str]()
    shown = set[type[Message]]()
    for request, replies in REPLIES_TO.items():
        parts.append(_section("The harness asks", request, definitions, said))
        for reply in replies:
            if reply not in shown:
                parts.append(_section("The design answers", reply, definitions, said))
            shown.add(reply)
    parts += [_section("The design says, unasked", each, definitions, said) for each in UNASKED]
    return "\n" + "\n".join(parts) + "\n"


def _section(
    who: str,
    message: type[Message],
    definitions: Mapping[str, Any],
    said: Mapping[type[Message], Mapping[str, Any]],
) -> str:
    """Return the section of a message: what it is for, an example, and its fields."""
    part = definitions[message.__name__]
    name = str(message.model_fields["type"].default)
    lines = [f"### {who}: `{name}`", "", part["description"], ""]
    lines += ["```json", json.dumps(said[message], indent=2, ensure_ascii=False), "```", ""]
    fields = {key: field for key, field in part["properties"].items() if key != "type"}
    if fields:
        lines += ["| field | type | what it says |", "|---|---|---|"]
        lines += [_row(key, field, key in part["required"]) for key, field in fields.items()]
        lines.append("")
    return "\n".join(lines)


def _row(name: str, field: Mapping[str, Any], is_required: bool) -> str:
    """Return a row of a table of fields."""
    default = "" if is_required else f"; left out: `{json.dumps(field['default'])}`"
    return f"| `{name}` | {_type(field)}{default} | {field['description']} |"


def _type(field: Mapping[str, Any]) -> str:
    """Return the type of a field, in words."""
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return " or ".join(f"`{json.dumps(each)}`" for each in field["enum"])
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"])
    if field["type"] == "array":
        return f"list of {_type(field['items'])}"
    if field["type"] == "object":
        return f"object: name -> {_type(field['additionalProperties'])}"
    return str(field["type"])


def talk() -> str:
    """Return the part with the recorded conversation."""
    lines = list[str]()
    for said in conversation.read():
        if said.by:
            sign = ">" if said.by == conversation.HARNESS else "<"
            lines.append(f"{sign} {json.dumps(said.says, ensure_ascii=False)}")
        else:
            lines.append(f"# {said.says}")
    return "\n```text\n" + "\n".join(lines) + "\n```\n"


PARTS: Final = {MESSAGES: messages, TALK: talk}


def out_of_date(page: Path = PAGE) -> Iterator[str]:
    """Yield why the parts have to be written again; nothing if they are up to date."""
    for part, text in PARTS.items():
        if part.of(page) != text():
            yield f"{page}: the part after {part.begin.strip()} is out of date"


def main(arguments: Sequence[str] | None = None, page: Path = PAGE) -> int:
    """Write the parts, or check them; return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1")
    if parser.parse_args(arguments).check:
        found = list(out_of_date(page))
        print("\n".join(found) or f"{page} is up to date")
        return int(bool(found))
    for part, text in PARTS.items():
        part.put(page, text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
