"""The call that registers the schema of an input at any registry."""

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import quote, urlsplit

from upheld.errors import MachineProblem, UsageProblem
from upheld.generators.formats import schema_of
from upheld.generators.schemas.schema import Registered
from upheld.protocol.inputs import Input
from upheld.reading import loaded
from upheld.registry.server import CONTENT_TYPE
from upheld.text import visible

DEADLINE_S: Final = 10.0
MOST_BYTES: Final = 1 << 20  # of an answer
SUFFIX: Final = "-value"  # of the subject of a topic's values, as serializers name it by default
_LOCAL: Final = ("127.0.0.1", "localhost", "::1")


def registered(described: Input, url: str) -> int:
    """Register the schema of an input, and return its id.

    Args:
        described: The description, which has a schema.
        url: Where the registry answers.

    Raises:
        UsageProblem: The registry refuses the schema, or the schema cannot be used.
        MachineProblem: The registry does not answer as one.
    """
    schema = schema_of(described)
    assert schema is not None
    subject = f"{_subject(url, described.topic + SUFFIX)}/versions"
    return _number(url, _asked(subject, _body(url, schema.registered)), "id")


def _body(url: str, schema: Registered) -> dict[str, Any]:
    """Return a schema as a registry takes it, after what it imports is registered."""
    references = [
        {"name": name, "subject": name, "version": _version(url, name, imported)}
        for name, imported in schema.imports
    ]
    body: dict[str, Any] = {"schemaType": schema.kind, "schema": schema.text}
    return body | ({"references": references} if references else {})


def _version(url: str, name: str, schema: Registered) -> int:
    """Register a schema that another one imports, and return its version."""
    body = _body(url, schema)
    _asked(f"{_subject(url, name)}/versions", body)
    return _number(url, _asked(_subject(url, name), body), "version")


def _subject(url: str, name: str) -> str:
    return f"{url.rstrip('/')}/subjects/{quote(name, safe='')}"


def _asked(url: str, body: dict[str, Any]) -> Any:
    """Post a body, and return the answer."""
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": CONTENT_TYPE, "Accept": CONTENT_TYPE}
    )
    is_local = urlsplit(url).hostname in _LOCAL
    proxies = [urllib.request.ProxyHandler({})] if is_local else []
    try:
        with urllib.request.build_opener(*proxies).open(request, timeout=DEADLINE_S) as answer:
            return loaded(answer.read(MOST_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            raise UsageProblem(
                f"The registry at {url} refuses the schema: {_said(error)}."
            ) from None
    except (OSError, HTTPException) as error:
        said = getattr(error, "reason", None) or error
        raise MachineProblem(f"The registry at {url} does not answer: {said}.") from None
    except ValueError:
        raise MachineProblem(f"The registry at {url} answers with no JSON.") from None


def _said(error: urllib.error.HTTPError) -> str:
    """Return what a registry says of an error, with its codes."""
    try:
        body = loaded(error.read(MOST_BYTES))
        said = f"{body['error_code']}, {body['message']}"
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        said = f"{error.code}, {error.reason}"
    return visible(said).rstrip(".")


def _number(url: str, answer: Any, name: str) -> int:
    found = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(found, int):
        raise MachineProblem(f"The registry at {url} answers without `{name}`.")
    return found
