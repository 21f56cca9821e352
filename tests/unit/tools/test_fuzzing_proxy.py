"""The fuzz target of the proxy, on a few inputs that once made it fall."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from kio.schema.index import api_key_map, schema_name_map

FILE = Path(__file__).parents[3] / "tools" / "fuzzing" / "proxy.py"
HUGE = b"\x7f\xff\xff\xff"


@pytest.fixture(scope="module")
def target() -> ModuleType:
    """Return the module, which is no package's."""
    spec = importlib.util.spec_from_file_location("fuzzing_proxy", FILE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def chosen(api_key: int, version: int) -> bytes:
    """Return the two bytes that choose an API and a version."""
    known = [(key, v) for key, name in api_key_map.items() for v in schema_name_map[name]]
    return known.index((api_key, version)).to_bytes(2)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\0\3\0\1",
        chosen(0, 3) + b"\0\0\0\7\xff\xff\xff\xff\xff\xff\0\0\0\1" + HUGE,
        chosen(0, 3) + b"\0\0\0\7\xff\xff\xff\xff\xff\xff\0\0\0\1\0\0\0\1\0\0\0\0\0\0",
        chosen(3, 9) + b"\0\0\0\7\0\1\1\1\0\0\0\0\1\0\0\0\0\0\0\0",
        chosen(18, 3) + b"\0\0\0\7\0\0\0\0\0\0\0\0",
        chosen(10, 4) + b"\0\0\0\7\0\0\0\0\0\xff\xff\xff\xff\x0f",
        chosen(24, 4) + b"\0\0\0\7\xff\xff\0\2\2a\0\0\0\0\0\0\0\0\0\0\1\1\0\0",
    ],
)
def test_bytes_are_read_or_refused(target: ModuleType, data: bytes) -> None:
    """Any error but a refusal would end the target."""
    target.proxy(data)


@pytest.mark.parametrize(
    "data", [b"", b"GET / HTTP/1.1\r\n", b"\0\0\0\x0a\0\3\0\1\0\0\0\7\xff\xff"]
)
def test_a_connection_ends_on_both_sides(target: ModuleType, data: bytes) -> None:
    """No matter what it carried, nothing of it is left."""
    target.wire(data)
