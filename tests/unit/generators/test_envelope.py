"""The envelope is generated from the .proto that ships, for any language."""

import shutil
from pathlib import Path

import pytest

from upheld.generators.envelope_pb2 import DESCRIPTOR, Envelope, Hop, Posting
from upheld.spec.schemas import path_of

ROOT = Path(__file__).parents[3]
NAME = "upheld/generators/envelope.proto"


def test_the_generated_module_is_that_of_the_proto(tmp_path: Path) -> None:
    """The command in the .proto writes the two files as they are."""
    protoc = pytest.importorskip("grpc_tools.protoc")
    source = tmp_path / NAME
    source.parent.mkdir(parents=True)
    shutil.copy(path_of("envelope"), source)
    where = [f"--{kind}={tmp_path}" for kind in ("proto_path", "python_out", "pyi_out")]

    assert protoc.main(["protoc", *where, str(source)]) == 0

    for file in ("envelope_pb2.py", "envelope_pb2.pyi"):
        assert (source.parent / file).read_text() == (ROOT / "generators" / file).read_text(), file


def test_the_proto_names_packages_of_go_and_java() -> None:
    """protoc needs no option for either language."""
    options = DESCRIPTOR.GetOptions()

    assert options.go_package == "upheld/envelope"
    assert options.java_package == "upheld"
    assert options.java_multiple_files


def test_the_bytes_of_an_envelope_stay() -> None:
    """Recorded histories hold such bytes, and designs of any language write them."""
    envelope = Envelope(
        id="e-1",
        timestamp_ms=7,
        chain=[Hop(topic="t", partition=1, offset=300, topic_id=b"\x01")],
        postings=[Posting(account="a", amount_cents=-5)],
    )

    data = envelope.SerializeToString(deterministic=True)

    assert data.hex() == ("0a03652d3110071a0b0a0174100118ac0222010122050a01611009")
    assert Envelope.FromString(data) == envelope
