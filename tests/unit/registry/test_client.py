"""A schema is registered, and confluent-kafka's client reads what was made."""

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2
from schema_files import FILES, schema_file, text_file

from upheld.errors import MachineProblem, UsageProblem
from upheld.generators.formats import format_of, schema_of
from upheld.generators.inputs import made
from upheld.generators.schemas.protobuf import Protobuf
from upheld.protocol.inputs import Input, described
from upheld.registry.client import registered
from upheld.registry.server import SchemaRegistry

CONTEXT = SerializationContext("orders", MessageField.VALUE)
MODERN = {"use.deprecated.format": False}
BASE = 'syntax = "proto3"; package base; message Money { int64 cents = 1; }'
IMPORTING = """\
syntax = "proto3";
import "base.proto";
import "google/protobuf/timestamp.proto";
message Unused { string a = 1; }
message Order { string id = 1; base.Money money = 2; google.protobuf.Timestamp at = 3; }
"""


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """Yield a registry without schemas."""
    with SchemaRegistry() as made:
        yield made


def an_input(folder: Path, form: str, **fields: Any) -> Input:
    """Describe an input with a registry."""
    table: dict[str, Any] = {"topic": "orders", "format": form, "registry": True}
    table["schema"] = schema_file(folder, form)
    return described(table | fields, where="design.toml", folder=folder)


def described_file(text: str | None) -> descriptor_pb2.FileDescriptorProto:
    """Return the file that a registry has in base64."""
    return descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text or ""))


def client_of(registry: SchemaRegistry) -> SchemaRegistryClient:
    """Return confluent-kafka's client of a registry."""
    return SchemaRegistryClient({"url": registry.url})


def test_avro_is_read_by_the_worlds_client(tmp_path: Path, registry: SchemaRegistry) -> None:
    """A value that it reads and writes again is the same, with the same id."""
    found = an_input(tmp_path, "avro", count=20)
    schema_id = registered(found, registry.url)
    client = client_of(registry)
    read = AvroDeserializer(client)
    write = AvroSerializer(client, FILES["avro"][1])
    plain = format_of(found, schema_of(found), schema_id)

    for send in made(found, 1, schema_id=schema_id):
        value = read(send.value, CONTEXT)
        assert isinstance(value, dict)
        assert str(value["id"]) == plain.decode(send.value or b"")["id"]
        again = write(value, CONTEXT)
        assert read(again, CONTEXT) == value
        assert again is not None
        assert again[:5] == (send.value or b"")[:5]


def test_json_is_read_by_the_worlds_client(tmp_path: Path, registry: SchemaRegistry) -> None:
    """It validates each value by the schema that it fetches."""
    found = an_input(tmp_path, "json-schema", count=20)
    schema_id = registered(found, registry.url)
    client = client_of(registry)
    read = JSONDeserializer(None, schema_registry_client=client)
    write = JSONSerializer(FILES["json-schema"][1], client)

    for send in made(found, 1, schema_id=schema_id):
        value = read(send.value, CONTEXT)
        assert value == format_of(found, schema_of(found), schema_id).decode(send.value or b"")
        again = write(value, CONTEXT)
        assert read(again, CONTEXT) == value
        assert again is not None
        assert again[:5] == (send.value or b"")[:5]


@pytest.mark.parametrize("message", ["Order", "Line", "Line.Part"])
def test_protobuf_is_read_by_the_worlds_client(
    tmp_path: Path, registry: SchemaRegistry, message: str
) -> None:
    """It finds the message by its place, and writes the same place."""
    found = an_input(tmp_path, "protobuf", count=20, message=message)
    schema = schema_of(found)
    assert isinstance(schema, Protobuf)
    client = client_of(registry)
    schema_id = registered(found, registry.url)
    read = ProtobufDeserializer(schema.message_class, MODERN, client)
    write = ProtobufSerializer(schema.message_class, client, MODERN)

    for send in made(found, 1, schema_id=schema_id):
        value = read(send.value, CONTEXT)
        data = (send.value or b"")[5 + len(schema.prefix) :]
        assert value == schema.message_class.FromString(data)
        again = write(value, CONTEXT)
        assert again is not None
        assert again[5 : 5 + len(schema.prefix)] == schema.prefix


def test_imports_are_registered_first(tmp_path: Path, registry: SchemaRegistry) -> None:
    """Each is a subject of its own; those of Google's every registry has."""
    text_file(tmp_path, "base.proto", BASE)
    file = text_file(tmp_path, "importing.proto", IMPORTING)
    found = an_input(tmp_path, "protobuf", schema=file, message="Order", count=5)
    schema_id = registered(found, registry.url)
    client = client_of(registry)

    assert client.get_subjects() == ["base.proto", "orders-value"]
    schema = client.get_schema(schema_id)
    assert schema.references is not None
    assert [(each.name, each.version) for each in schema.references] == [("base.proto", 1)]
    assert described_file(schema.schema_str).name == "importing.proto"
    assert registered(found, registry.url) == schema_id


@pytest.mark.parametrize("form", FILES)
def test_the_worlds_client_finds_what_was_registered(
    tmp_path: Path, registry: SchemaRegistry, form: str
) -> None:
    """It asks by id, by version and by text, under the name of serializers."""
    schema_id = registered(an_input(tmp_path, form), registry.url)
    client = client_of(registry)
    latest = client.get_latest_version("orders-value")
    schema = client.get_schema(schema_id)

    assert (latest.schema_id, latest.version) == (schema_id, 1)
    assert client.get_version("orders-value", 1).schema_id == schema_id
    assert client.lookup_schema("orders-value", schema).schema_id == schema_id
    assert client.register_schema("orders-value", schema) == schema_id
    assert client.get_versions("orders-value") == [1]


def test_the_worlds_client_hears_confluents_codes(registry: SchemaRegistry) -> None:
    """It tells what is not there from what went wrong."""
    client = client_of(registry)
    client.register_schema("known", Schema('"long"', "AVRO"))
    for ask, code in (
        (lambda: client.get_latest_version("none"), 40401),
        (lambda: client.get_version("known", 7), 40402),
        (lambda: client.lookup_schema("known", Schema('"int"', "AVRO")), 40403),
        (lambda: client.get_schema(99), 40403),
    ):
        with pytest.raises(SchemaRegistryError) as refused:
            ask()
        assert refused.value.error_code == code


class _Odd(BaseHTTPRequestHandler):
    """A server that is no registry: it answers as its path says."""

    def do_POST(self) -> None:
        """Answer with a page, with too little, or not at all."""
        answer = {"page": b"<html>", "empty": b"{}", "list": b"[]"}.get(self.path.split("/")[1])
        self.send_response(200 if answer else 500)
        self.end_headers()
        self.wfile.write(answer or b"down")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def odd() -> Iterator[str]:
    """Yield the address of a server that is no registry."""
    server = HTTPServer(("127.0.0.1", 0), _Odd)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("page", "answers with no JSON"),
        ("empty", "answers without `id`"),
        ("list", "answers without `id`"),
    ],
)
def test_a_server_that_is_no_registry_is_said_so(
    tmp_path: Path, odd: str, path: str, said: str
) -> None:
    """An address with a slip in it may answer too."""
    with pytest.raises(MachineProblem, match=said):
        registered(an_input(tmp_path, "avro"), f"{odd}/{path}")


def test_what_a_registry_refuses_is_a_sentence(tmp_path: Path, odd: str) -> None:
    """It has the address, and the answer's own words."""
    with pytest.raises(UsageProblem, match=r"refuses the schema: 500, Internal Server Error\."):
        registered(an_input(tmp_path, "avro"), f"{odd}/down")


def test_a_registry_that_is_away_is_a_sentence(tmp_path: Path) -> None:
    """The machine is to blame, or the address."""
    with SchemaRegistry() as gone:
        url = gone.url
    with pytest.raises(MachineProblem, match=f"The registry at {url}/.* does not answer: "):
        registered(an_input(tmp_path, "avro"), url)
