"""Places that a loud stop names: a partition, a record or a file.

A `failed` has fields for them. Without the fields its message counts, in any usual form: each
client library and each language writes a place in a way of its own. A check asks whether the
message has the place, and never how the sentence around it reads.
"""

import re
from pathlib import PurePath
from typing import Final

from upheld.history.events import Instance

_QUOTES: Final = r"[\s'\"\]})>,;:=]*"  # between two words of a place
_PARTITION: Final = r"(?:partition|part|p)(?![a-z])"
_GAP: Final = r"[\s'\"({\[:=#]*"  # between a word and its number


def stop_names_partition(stop: Instance, place: str) -> bool:
    """Return whether a loud stop names a partition, in its fields or in its message."""
    said = stop.failure
    if said and said.topic is not None and said.partition is not None:
        return f"{said.topic}-{said.partition}" == place
    return names_partition(stop.detail, place)


def stop_names_record(stop: Instance, at: str) -> bool:
    """Return whether a loud stop names a record, in its fields or in its message."""
    said = stop.failure
    if said and said.topic is not None and None not in {said.partition, said.offset}:
        return f"{said.topic}-{said.partition}@{said.offset}" == at
    return names_record(stop.detail, at)


def stop_names_file(stop: Instance, file: str) -> bool:
    """Return whether a loud stop names a file, in its field or in its message."""
    said = stop.failure
    return names_file(said.file if said and said.file is not None else stop.detail, file)


def names_partition(message: str, place: str) -> bool:
    """Return whether a message names a partition, which is given as `topic-0`.

    Usual forms are `topic-0`, `topic[0]`, `topic [0]`, `topic/0`, `partition 0 of topic`, and
    `topic = topic, partition = 0`.
    """
    topic, _, partition = place.rpartition("-")
    name = _topic(topic)
    number = rf"{partition}(?!\d)"
    forms = (
        rf"{name}['\"]?\s?[-:/#@_ ]\s?{number}",
        rf"{name}['\"]?\s?[\[({{]{_GAP}(?:{_PARTITION}{_GAP})?{number}",
        rf"{name}{_QUOTES}\b{_PARTITION}{_GAP}{number}",
        rf"\bpartition\b(?:\s+(?:id|number|no\.?))?{_GAP}{number}{_QUOTES}"
        rf"(?:(?:of|in|at|on|for|from)\s+)?(?:the\s+)?(?:topic\b{_GAP})?{name}",
    )
    return any(re.search(form, message, re.IGNORECASE) for form in forms)


def names_record(message: str, at: str) -> bool:
    """Return whether a message names a record, which is given as `topic-0@7`.

    It has to name the record's partition and offset.

    Usual forms are `topic-0@7`, `topic [0] at offset 7` and `offset 7 of partition 0 of topic`.
    """
    place, _, offset = at.rpartition("@")
    topic, _, partition = place.rpartition("-")
    number = rf"{offset}(?!\d)"
    name = _topic(topic)
    forms = (
        rf"\boffsets?\b(?:\s+(?:is|was|of|at))?{_GAP}{number}",
        rf"{name}\D{{1,24}}{partition}{_QUOTES}(?:\s*(?:@|\bat\b|/|-|\[|\())\s*{number}",
        rf"{name}\D{{1,24}}{partition}:\s?{number}",
    )
    is_there = any(re.search(form, message, re.IGNORECASE) for form in forms)
    return is_there and names_partition(message, place)


def names_file(message: str, file: str) -> bool:
    """Return whether a message names a file.

    A file whose name is a number is named by its folder too.
    """
    path = PurePath(file)
    name = f"{path.parent.name}/{path.name}" if path.name.isdigit() else path.name
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) is not None


def _topic(topic: str) -> str:
    """Return a pattern of a topic's name that is no part of a longer one."""
    return rf"(?<![\w.-]){re.escape(topic)}(?![\w.])"
