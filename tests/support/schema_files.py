"""Schemas of an order, in each kind, for tests to write into a folder."""

import json
from pathlib import Path
from typing import Any, Final

JSON_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Order",
    "type": "object",
    "required": ["id", "account", "cents", "placed_at", "lines"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "account": {"type": "string", "pattern": "^acc-[0-9]{4}$"},
        "cents": {"type": "integer", "minimum": 1, "exclusiveMaximum": 100_000},
        "placed_at": {"type": "string", "format": "date-time"},
        "customer": {"$ref": "#/$defs/person"},
        "lines": {
            "type": "array",
            "minItems": 1,
            "maxItems": 4,
            "items": {
                "type": "object",
                "required": ["sku"],
                "properties": {
                    "sku": {"type": "string", "minLength": 3, "maxLength": 8},
                    "price": {"type": "number", "minimum": 0, "multipleOf": 0.25},
                },
            },
        },
        "pay": {"oneOf": [{"const": "cash"}, {"type": "object", "required": ["card"]}]},
    },
    "$defs": {
        "person": {
            "type": "object",
            "required": ["first_name"],
            "properties": {"first_name": {"type": "string"}, "email": {"format": "email"}},
        }
    },
}
AVRO: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "account", "type": "string"},
        {"name": "cents", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "digest", "type": {"type": "fixed", "name": "Digest", "size": 4}},
        {"name": "was", "type": ["null", "State"]},
        {"name": "parent", "type": ["null", "Order"]},
        {"name": "tags", "type": {"type": "map", "values": ["int", "string", "bytes"]}},
        {"name": "lines", "type": {"type": "array", "items": "double"}},
    ],
}
PROTO: Final = """\
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";

message Order {
  string id = 1;
  string account = 2;
  int64 cents = 3;
  google.protobuf.Timestamp at = 4;
  repeated Line lines = 5;
  oneof pay {
    string card = 6;
    bool cash = 7;
  }
  map<string, int32> counts = 8;
  Order parent = 9;
}

message Line {
  message Part {
    bytes data = 1;
  }
  string sku = 1;
  double price = 2;
  State state = 3;
  Part part = 4;
}

enum State {
  NEW = 0;
  PAID = 1;
}
"""
FILES: Final = {
    "json-schema": ("order.json", json.dumps(JSON_SCHEMA)),
    "avro": ("order.avsc", json.dumps(AVRO)),
    "protobuf": ("order.proto", PROTO),
}


def schema_file(folder: Path, form: str) -> Path:
    """Write the schema of a format, and return its file."""
    name, text = FILES[form]
    return text_file(folder, name, text)


def text_file(folder: Path, name: str, text: str) -> Path:
    """Write a file, and return it."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file
