"""The built-in registry answers as Confluent's does, codes of errors included."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from upheld.registry.server import CONTENT_TYPE, MOST_BYTES, SchemaRegistry

LONG = {"schema": '"long"'}
ORDER = {"schema": '{"type": "object"}', "schemaType": "JSON"}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """Yield a registry without schemas."""
    with SchemaRegistry() as made:
        yield made


def asked(
    registry: SchemaRegistry, path: str, body: Any = None, method: str | None = None
) -> tuple[int, Any]:
    """Return the status and the answer of a request."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(registry.url + path, data, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_schema_is_found_by_id_version_and_text(registry: SchemaRegistry) -> None:
    """A schema keeps its id in another subject, and its version in its own."""
    first = asked(registry, "/subjects/orders-value/versions", ORDER)[1]
    again = asked(registry, "/subjects/orders-value/versions", ORDER)[1]
    other = asked(registry, "/subjects/a%2Fb/versions?normalize=true", ORDER)[1]
    second = asked(registry, "/subjects/orders-value/versions", LONG)[1]

    assert (first["id"], first["version"]) == (1, 1)
    assert first == again
    assert (other["id"], other["version"], other["subject"]) == (1, 1, "a/b")
    assert (second["id"], second["version"]) == (2, 2)
    assert asked(registry, "/schemas/ids/1")[1] == {
        "schema": '{"type":"object"}',
        "schemaType": "JSON",
    }
    assert asked(registry, "/schemas/ids/2")[1] == {"schema": '"long"'}
    assert asked(registry, "/subjects")[1] == ["a/b", "orders-value"]
    assert asked(registry, "/subjects/orders-value/versions")[1] == [1, 2]
    assert asked(registry, "/subjects/orders-value/versions/latest")[1] == second
    assert asked(registry, "/subjects/orders-value/versions/1")[1] == first
    assert asked(registry, "/subjects/orders-value/versions/1/schema")[1] == {"type": "object"}
    assert asked(registry, "/subjects/orders-value", ORDER)[1] == first
    assert asked(registry, "/schemas/ids/1/subjects")[1] == ["orders-value", "a/b"]
    assert asked(registry, "/schemas/ids/2/versions")[1] == [
        {"subject": "orders-value", "version": 2}
    ]


def test_spaces_in_a_schema_make_no_other_one(registry: SchemaRegistry) -> None:
    """A serializer writes JSON in its own way."""
    asked(registry, "/subjects/a/versions", {"schema": '{"type": "object"}', "schemaType": "JSON"})

    status, found = asked(
        registry, "/subjects/a", {"schema": '{ "type":"object" }', "schemaType": "JSON"}
    )

    assert (status, found["id"]) == (200, 1)


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/subjects/none/versions", None, 40401),
        ("/subjects/none/versions/latest", None, 40401),
        ("/subjects/none", ORDER, 40401),
        ("/config/none", None, 40401),
        ("/subjects/known/versions/2", None, 40402),
        ("/subjects/known/versions/two", None, 42202),
        ("/subjects/known/versions/0", None, 42202),
        ("/subjects/known", ORDER, 40403),
        ("/schemas/ids/9", None, 40403),
        ("/schemas/ids/x", None, 40403),
        ("/subjects/known/versions", {"schema": "{", "schemaType": "JSON"}, 42201),
        ("/subjects/known/versions", {"schema": "{"}, 42201),
        ("/subjects/known/versions", {"schema": 3}, 422),
        ("/subjects/known/versions", {"schema": "{}", "schemaType": "XML"}, 422),
        ("/subjects/known/versions", {"schema": "{}", "references": 3}, 422),
        ("/subjects/known/versions", {"schema": "{}", "references": [{}]}, 422),
        (
            "/subjects/known/versions",
            {"schema": "{}", "references": [{"name": "a", "subject": "none", "version": 1}]},
            42201,
        ),
        ("/subjects/known/versions", [], 422),
        ("/subjects/known/versions", b"no JSON", 400),
        ("/subjects/known/versions", b"[" * 100_000, 400),
        ("/nothing", None, 404),
        ("/subjects/known/versions/1/2/3", None, 404),
    ],
)
def test_a_request_is_refused_with_confluents_code(
    registry: SchemaRegistry, path: str, body: Any, code: int
) -> None:
    """The status of HTTP is the beginning of the code."""
    asked(registry, "/subjects/known/versions", LONG)
    status, said = asked(registry, path, body)

    assert said["error_code"] == code
    assert str(code).startswith(str(status))
    assert said["message"]
    assert asked(registry, "/subjects")[1] == ["known"]


def test_a_huge_request_is_not_read(registry: SchemaRegistry) -> None:
    """Its length is enough."""
    request = urllib.request.Request(
        f"{registry.url}/subjects/a/versions", b"", {"Content-Length": str(MOST_BYTES + 1)}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    with pytest.raises(urllib.error.HTTPError) as refused:
        opener.open(request, timeout=10)
    with refused.value as error:
        assert error.code == 413


def test_the_compatibility_is_none(registry: SchemaRegistry) -> None:
    """Another level is refused, since no schema is compared."""
    asked(registry, "/subjects/a/versions", LONG)

    assert asked(registry, "/config")[1] == {"compatibilityLevel": "NONE"}
    assert asked(registry, "/config/a")[1] == {"compatibilityLevel": "NONE"}
    said = asked(registry, "/config/a", {"compatibility": "NONE"}, "PUT")
    assert said == (200, {"compatibility": "NONE"})
    assert asked(registry, "/config", {"compatibility": "FULL"}, "PUT")[1]["error_code"] == 42203
    compatible = asked(registry, "/compatibility/subjects/a/versions/latest", ORDER)
    assert compatible == (200, {"is_compatible": True})


def test_what_a_client_asks_first_is_answered(registry: SchemaRegistry) -> None:
    """Clients look whether anything is there, and which types it knows."""
    assert asked(registry, "/") == (200, {})
    assert asked(registry, "/schemas/types")[1] == ["AVRO", "JSON", "PROTOBUF"]
    assert asked(registry, "/mode")[1] == {"mode": "READWRITE"}


def test_it_answers_on_this_machine_alone(registry: SchemaRegistry) -> None:
    """Its address is a loopback one; after it is closed, nothing answers."""
    assert registry.url.startswith("http://127.0.0.1:")
    registry.close()

    with pytest.raises(urllib.error.URLError):
        asked(registry, "/subjects")
