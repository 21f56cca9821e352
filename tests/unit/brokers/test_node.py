import socket
from uuid import UUID

import pytest

from upheld.brokers import node


def test_a_cluster_id_is_never_taken_for_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """No id begins with a dash, as one in 64 would by chance.

    Kafka's own tool would refuse to format with such an id.
    """
    ids = iter([UUID(bytes=b"\xf8" + bytes(15)), UUID(int=0)])
    monkeypatch.setattr(node, "uuid4", lambda: next(ids))

    assert node.new_cluster_id() == "A" * 22


def test_free_ports_differ_and_a_taken_one_is_seen() -> None:
    """Ports that are asked for together are held together."""
    ports = node.free_ports(20)

    assert len(set(ports)) == 20
    with socket.create_server(("127.0.0.1", ports[0])):
        assert not node.is_free(ports[0])
    assert node.is_free(ports[0])
