"""The names that a design says in `ready`, checked before anything uses them.

A name is no authority: a design could name a topic of its host's. Consumer groups are only read,
so a design may call its group as it likes. Topics and transactional ids belong to the application,
so they contain its id. A transactional id may also be drawn at random.
"""

import re
from typing import Final

from upheld.programs import PROGRAMS
from upheld.protocol.messages import Ready, Start
from upheld.protocol.names import has_id_of, is_drawn
from upheld.text import visible

MOST_TOPIC_CHARS: Final = 249  # Kafka's own limit
MOST_ID_BYTES: Final = 32_767  # of a string in Kafka's protocol
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]+")
_SHOWN_CHARS: Final = 80


def wrong_name(request: Start, ready: Ready) -> str:
    """Return what is wrong with a name in `ready`; empty if nothing is.

    Args:
        request: The start that the instance was asked for.
        ready: Its answer, or its answer to a later `activate`.
    """
    own = request.application_id
    if ready.consumer_group is not None and (wrong := _wrong_id(ready.consumer_group)):
        return _sentence("consumer_group", ready.consumer_group, wrong, "a group id")
    prefix = ready.transactional_id_prefix or ""
    if prefix and (
        wrong := _wrong_id(prefix) or ("" if is_drawn(prefix) else _not_own(prefix, own))
    ):
        expected = f"a prefix with {own} or a UUID in it"
        return _sentence("transactional_id_prefix", prefix, wrong, expected)
    for topic in ready.internal_topics:
        if wrong := _wrong_topic(topic) or _not_own(topic, own):
            return _sentence("internal_topics", topic, wrong, f"topics with {own} in their names")
    table = ready.table or ""
    if table and table not in _outputs(request) and (wrong := _wrong_table(table, request)):
        return _sentence(
            "table", table, wrong, f"an output topic, or a topic with {own} in its name"
        )
    return ""


def _outputs(request: Start) -> set[str]:
    """Return the topics of a start that the program does not read."""
    program = PROGRAMS.get(request.program)
    inputs = program.inputs if program else ()
    return {topic for role, topic in request.topics.items() if role not in inputs}


def _wrong_table(table: str, request: Start) -> str:
    """Return what is wrong with a table that is none of the outputs."""
    if table in request.topics.values():
        return "is an input"
    return _wrong_topic(table) or _not_own(table, request.application_id)


def _wrong_topic(name: str) -> str:
    """Return why Kafka has no topic of that name; empty if it may have."""
    if len(name) > MOST_TOPIC_CHARS:
        return f"has {len(name)} characters, and a topic's name at most {MOST_TOPIC_CHARS}"
    if name in {"", ".", ".."} or not _TOPIC.fullmatch(name):
        return "is no name of a topic: letters, digits, '.', '_' and '-' make one"
    return ""


def _wrong_id(name: str) -> str:
    """Return why a name is no group id and no transactional id; empty if it is one."""
    if not name:
        return "is empty"
    if (size := len(name.encode("utf-8", "surrogatepass"))) > MOST_ID_BYTES:
        return f"has {size} bytes, and an id at most {MOST_ID_BYTES}"
    return "" if name.isprintable() else "has characters that cannot be printed"


def _not_own(name: str, application_id: str) -> str:
    return "" if has_id_of(name, [application_id]) else "is not the application's own"


def _sentence(field: str, name: str, wrong: str, expected: str) -> str:
    """Return the part of a breach that names field and value."""
    return (
        f"said {field} '{visible(name, _SHOWN_CHARS)}' in ready, which {wrong}. Expected {expected}"
    )
