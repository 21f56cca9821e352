"""The formats in which values of an input are written as bytes."""

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from upheld.protocol.inputs import Input
from upheld.reading import loaded

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]


def encoder(described: Input) -> Encode:
    """Return what writes a value as bytes in the format of an input.

    It raises ValueError for a value that the format cannot hold.
    """
    return _unpacked if described.format == "bytes" else compact


def decoder(described: Input) -> Decode:
    """Return what reads a value that `encoder` has written."""
    return _packed if described.format == "bytes" else loaded


def compact(value: Any) -> bytes:
    """Return a value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _unpacked(value: Any) -> bytes:
    """Return the bytes that a sample has as text in base64."""
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, binascii.Error):
        raise ValueError("it is to be a text in base64") from None


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode()
