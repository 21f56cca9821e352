"""A schema registry that answers on the loopback address, from memory.

It has the calls of Confluent's registry that serializers, deserializers and their clients make. It
ends with the process, and no other machine reaches it. It compiles nothing: a schema of Protobuf is
given back as it was registered.
"""

import json
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

from upheld.reading import loaded
from upheld.registry.schemas import COMPATIBILITY, KINDS, Refused, Schemas, read
from upheld.threads import Heard

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
MOST_BYTES: Final = 4 << 20  # of a request
SILENCE_S: Final = 30.0  # after which a connection is closed

_Answer = Callable[[Schemas, list[str], Any], Any]


def _registered(schemas: Schemas, parts: list[str], body: Any) -> Any:
    return schemas.register(parts[0], read(body)).told()


def _found(schemas: Schemas, parts: list[str], body: Any) -> Any:
    return schemas.found(parts[0], read(body)).told()


def _places(schemas: Schemas, parts: list[str], _: Any) -> Any:
    found = schemas.places(schemas.of_id(parts[0]))
    return [{"subject": each.subject, "version": each.number} for each in found]


def _subjects_of(schemas: Schemas, parts: list[str], _: Any) -> Any:
    return [each.subject for each in schemas.places(schemas.of_id(parts[0]))]


def _config(schemas: Schemas, parts: list[str], _: Any) -> Any:
    if parts:
        schemas.versions(parts[0])
    return {"compatibilityLevel": COMPATIBILITY}


def _set_config(_: Schemas, _parts: list[str], body: Any) -> Any:
    wanted = body.get("compatibility") if isinstance(body, dict) else None
    if wanted != COMPATIBILITY:
        raise Refused(42203, f"Invalid compatibility level: this registry has {COMPATIBILITY} only")
    return {"compatibility": COMPATIBILITY}


def _compatible(schemas: Schemas, parts: list[str], body: Any) -> Any:
    read(body)
    schemas.versions(parts[0])
    return {"is_compatible": True}


# The method, the path, and what answers; each group of the path is a part.
_CALLS: Final[tuple[tuple[str, re.Pattern[str], _Answer], ...]] = tuple(
    (method, re.compile(path), answer)
    for method, path, answer in (
        ("GET", "/", lambda *_: {}),
        ("GET", "/subjects", lambda schemas, *_: schemas.subjects()),
        ("POST", "/subjects/([^/]+)/versions", _registered),
        ("POST", "/subjects/([^/]+)", _found),
        (
            "GET",
            "/subjects/([^/]+)/versions",
            lambda schemas, parts, _: [each.number for each in schemas.versions(parts[0])],
        ),
        (
            "GET",
            "/subjects/([^/]+)/versions/([^/]+)",
            lambda schemas, parts, _: schemas.version(*parts).told(),
        ),
        (
            "GET",
            "/subjects/([^/]+)/versions/([^/]+)/schema",
            lambda schemas, parts, _: loaded(schemas.version(*parts).schema.text),
        ),
        ("GET", "/schemas/types", lambda *_: list(KINDS)),
        ("GET", "/schemas/ids/([^/]+)", lambda schemas, parts, _: schemas.of_id(parts[0]).told()),
        ("GET", "/schemas/ids/([^/]+)/versions", _places),
        ("GET", "/schemas/ids/([^/]+)/subjects", _subjects_of),
        ("GET", "/config", _config),
        ("GET", "/config/([^/]+)", _config),
        ("PUT", "/config(?:/[^/]+)?", _set_config),
        ("GET", "/mode(?:/[^/]+)?", lambda *_: {"mode": "READWRITE"}),
        ("POST", "/compatibility/subjects/([^/]+)/versions(?:/[^/]+)?", _compatible),
    )
)


class SchemaRegistry:
    """A schema registry that runs until it is closed.

    Attributes:
        schemas: What it holds.
        url: Where it answers.
    """

    def __init__(self) -> None:
        self.schemas = Schemas()
        handler = type("Handler", (_Handler,), {"schemas": self.schemas})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Heard(self._server.serve_forever, 0.05, name="schema-registry")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    schemas: Schemas
    protocol_version = "HTTP/1.1"
    server_version = "upheld"
    timeout = SILENCE_S

    def do_GET(self) -> None:
        """Answer a question."""
        self._answer()

    def do_POST(self) -> None:
        """Answer a request with a body."""
        self._answer()

    def do_PUT(self) -> None:
        """Answer a request with a body."""
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing on the terminal."""

    def _answer(self) -> None:
        try:
            body = self._body()
            said: Any = self._said(body)
            status = int(HTTPStatus.OK)
        except Refused as refused:
            said = {"error_code": refused.code, "message": str(refused)}
            status = refused.status
        self._send(status, said)

    def _body(self) -> Any:
        """Return the body of the request as JSON; None if there is none."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            self.close_connection = True
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MOST_BYTES} bytes")
        data = self.rfile.read(int(length))
        if not data:
            return None
        try:
            return loaded(data)
        except (ValueError, RecursionError):
            raise Refused(HTTPStatus.BAD_REQUEST, "the body is no JSON") from None

    def _said(self, body: Any) -> Any:
        path = urlsplit(self.path).path
        for method, pattern, answer in _CALLS:
            found = pattern.fullmatch(path.rstrip("/") or "/")
            if found and method == self.command:
                return answer(self.schemas, list(map(unquote, found.groups())), body)
        raise Refused(HTTPStatus.NOT_FOUND, "HTTP 404 Not Found")

    def _send(self, status: int, said: Mapping[str, Any] | list[Any]) -> None:
        data = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
