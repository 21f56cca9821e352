"""The schemas of a registry, in memory: ids, subjects and versions.

One schema has one id, in whatever subjects it is. A subject numbers its versions from 1. Any schema
may follow any other one: the compatibility is NONE, as for a test whose schemas are not judged.
"""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from upheld.reading import loaded

KINDS: Final = ("AVRO", "JSON", "PROTOBUF")
LATEST: Final = ("latest", "-1")
COMPATIBILITY: Final = "NONE"


class Refused(Exception):
    """A request that the registry refuses, with the code that Confluent's has for it.

    Attributes:
        code: The code; its first three digits are the status of HTTP.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code

    @property
    def status(self) -> int:
        """The status of HTTP."""
        return self.code // 100 if self.code >= 1_000 else self.code


@dataclass(frozen=True)
class Stored:
    """A schema without its place.

    Attributes:
        kind: AVRO, JSON or PROTOBUF.
        text: The schema.
        references: The schemas that it imports, as JSON.
    """

    kind: str
    text: str
    references: str = "[]"

    def told(self) -> dict[str, Any]:
        """Return what a registry says of it; the kind AVRO goes without saying."""
        said: dict[str, Any] = {"schema": self.text}
        if self.kind != KINDS[0]:
            said["schemaType"] = self.kind
        if references := loaded(self.references):
            said["references"] = references
        return said


@dataclass(frozen=True)
class Version:
    """A schema at its place in a subject."""

    subject: str
    number: int
    id: int
    schema: Stored

    def told(self) -> dict[str, Any]:
        """Return what a registry says of it."""
        place = {"subject": self.subject, "version": self.number, "id": self.id}
        return place | self.schema.told()


class Schemas:
    """The schemas of a registry; several threads may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids: dict[Stored, int] = {}
        self._subjects: dict[str, list[Version]] = {}

    def subjects(self) -> list[str]:
        """Return the subjects, by name."""
        with self._lock:
            return sorted(self._subjects)

    def versions(self, subject: str) -> list[Version]:
        """Return the versions of a subject.

        Raises:
            Refused: There is no such subject.
        """
        with self._lock:
            found = list(self._subjects.get(subject, ()))
        if not found:
            raise Refused(40401, f"Subject '{subject}' not found.")
        return found

    def version(self, subject: str, wanted: str) -> Version:
        """Return one version of a subject.

        Args:
            subject: The subject.
            wanted: A number, or one of `LATEST`.

        Raises:
            Refused: There is no such version.
        """
        found = self.versions(subject)
        if wanted in LATEST:
            return found[-1]
        if not (wanted.isascii() and wanted.isdecimal() and int(wanted[:10]) > 0):
            raise Refused(
                42202,
                f"The specified version '{wanted}' is not a valid version id. Allowed values are "
                'between [1, 2^31-1] and the string "latest"',
            )
        for each in found:
            if str(each.number) == wanted:
                return each
        raise Refused(40402, f"Version {wanted} not found.")

    def of_id(self, schema_id: str) -> Stored:
        """Return the schema of an id.

        Raises:
            Refused: There is no such schema.
        """
        with self._lock:
            found = {str(number): schema for schema, number in self._ids.items()}
        if schema_id not in found:
            raise Refused(40403, f"Schema {schema_id} not found")
        return found[schema_id]

    def places(self, schema: Stored) -> list[Version]:
        """Return where a schema stands."""
        return [each for each in self._all() if each.schema == schema]

    def register(self, subject: str, schema: Stored) -> Version:
        """Return where a schema stands in a subject; put it there if it does not.

        Raises:
            Refused: One of the schemas that it imports is not there.
        """
        self._demand_references(schema)
        with self._lock:
            versions = self._subjects.setdefault(subject, [])
            for each in versions:
                if each.schema == schema:
                    return each
            schema_id = self._ids.setdefault(schema, len(self._ids) + 1)
            added = Version(subject, len(versions) + 1, schema_id, schema)
            versions.append(added)
            return added

    def found(self, subject: str, schema: Stored) -> Version:
        """Return where a schema stands in a subject.

        Raises:
            Refused: The subject or the schema is not there.
        """
        for each in self.versions(subject):
            if each.schema == schema:
                return each
        raise Refused(40403, "Schema not found")

    def _all(self) -> Iterator[Version]:
        with self._lock:
            found = [each for versions in self._subjects.values() for each in versions]
        return iter(found)

    def _demand_references(self, schema: Stored) -> None:
        for each in loaded(schema.references):
            try:
                self.version(str(each["subject"]), str(each["version"]))
            except Refused as refused:
                raise Refused(42201, f"Invalid schema: a reference: {refused}") from None


def read(body: Any) -> Stored:
    """Return the schema of a request.

    Raises:
        Refused: It is no schema.
    """
    if not isinstance(body, dict) or not isinstance(body.get("schema"), str):
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "schema: a text is expected")
    kind = body.get("schemaType") or KINDS[0]
    if kind not in KINDS:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, f"Invalid schema type {kind}")
    references = body.get("references") or []
    is_list = isinstance(references, list)
    if not is_list or not all(
        isinstance(each, dict) and {"name", "subject", "version"} <= each.keys()
        for each in references
    ):
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "references: a list of places is expected")
    return Stored(kind, _canonical(kind, body["schema"]), json.dumps(references, sort_keys=True))


def _canonical(kind: str, text: str) -> str:
    """Return a schema as it is compared: JSON without spaces, and any other text as it is."""
    if kind == "PROTOBUF":
        return text
    try:
        return json.dumps(loaded(text), separators=(",", ":"))
    except (ValueError, RecursionError):
        is_name = kind == KINDS[0] and text.isidentifier()  # "string" may come without its quotes
        if is_name:
            return json.dumps(text)
    raise Refused(42201, f"Invalid schema: it is no JSON, which the type {kind} has to be")
