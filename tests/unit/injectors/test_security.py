"""TLS and a login end at the proxy, and the broker behind it hears neither."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16, i32
from scramp import ScramClient

from upheld.injectors.proxy import security
from upheld.injectors.proxy.frames import NoRequestError, Request, decode, encode, parse, schemas
from upheld.injectors.proxy.proxy import Proxy
from upheld.injectors.proxy.security import USER, Login, Security, secured

ANSWER_S = 5.0
METADATA = b"\0\3\0\1\0\0\0\7\0\2me\0\0\0\0"  # version 1, correlation id 7, of all topics
HANDSHAKE, AUTHENTICATE = (17, 1), (36, 2)


def request(api: tuple[int, int], **fields: object) -> Request:
    """Return a request."""
    schema: Any = schemas(*api)[0]
    header: Any = schema.__header_schema__
    head = header(
        request_api_key=i16(api[0]),
        request_api_version=i16(api[1]),
        correlation_id=i32(7),
        client_id="me",
    )
    return parse(encode(head, schema(**fields)))


def answer(login: Login, asked: Request) -> Any:
    """Return the message of the answer to a request of a login."""
    assert login.takes(asked)
    return decode(asked, login.answer_to(asked))[1]


def logged_in(login: Login, mechanism: str, user: str, password: str) -> Any:
    """Log in as a client does, and return the last answer."""
    known = answer(login, request(HANDSHAKE, mechanism=mechanism))
    assert known.error_code is ErrorCode.none
    if mechanism == "PLAIN":
        said = f"\0{user}\0{password}".encode()
        return answer(login, request(AUTHENTICATE, auth_bytes=said))
    client = ScramClient([mechanism], user, password)
    first = client.get_client_first().encode()
    said = answer(login, request(AUTHENTICATE, auth_bytes=first)).auth_bytes
    client.set_server_first(said.decode())
    final = client.get_client_final().encode()
    last = answer(login, request(AUTHENTICATE, auth_bytes=final))
    if last.error_code is ErrorCode.none:
        client.set_server_final(last.auth_bytes.decode())
    return last


@pytest.mark.parametrize("mechanism", security.MECHANISMS)
def test_the_right_password_opens_the_door(mechanism: str) -> None:
    """The server of SCRAM shows that it knows the password, too."""
    login = Login("right")

    assert logged_in(login, mechanism, USER, "right").error_code is ErrorCode.none
    assert login.is_over
    assert not login.takes(parse(METADATA))


@pytest.mark.parametrize("mechanism", security.MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [(USER, "wrong"), ("other", "right")])
def test_another_user_or_password_does_not(mechanism: str, user: str, password: str) -> None:
    """The answer is Kafka's, and says why."""
    login = Login("right")

    last = logged_in(login, mechanism, user, password)

    assert last.error_code is ErrorCode.sasl_authentication_failed
    assert last.error_message.startswith(f"the login by {mechanism} has failed: ")
    assert not login.is_over


def test_a_mechanism_that_is_not_known_is_answered() -> None:
    """The answer names those that are."""
    found = answer(Login("right"), request(HANDSHAKE, mechanism="GSSAPI"))

    assert found.error_code is ErrorCode.unsupported_sasl_mechanism
    assert found.mechanisms == security.MECHANISMS


def test_nothing_else_passes_before_the_login() -> None:
    """A client asks for the versions first."""
    login = Login("right")

    assert not login.takes(request((18, 0)))
    with pytest.raises(NoRequestError, match="metadata before its login"):
        login.takes(parse(METADATA))
    with pytest.raises(NoRequestError, match="before its SaslHandshake"):
        answer(login, request(AUTHENTICATE, auth_bytes=b""))
    with pytest.raises(NoRequestError, match="version 0"):
        answer(login, request((17, 0), mechanism="PLAIN"))


@pytest.fixture
def broker() -> Iterator[socket.socket]:
    """Yield a listener in the place of a broker."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(ANSWER_S)
        yield listening


def test_a_door_with_tls_and_a_login(broker: socket.socket, tmp_path: Path) -> None:
    """The broker gets the requests behind the login, in plain text."""
    own = secured("sasl_ssl", tmp_path)
    assert set(own.client) >= {"ssl.ca.location", "sasl.username", "sasl.password"}
    proxy = Proxy(f"127.0.0.1:{broker.getsockname()[1]}")
    try:
        host, _, port = proxy.door("a", own).rpartition(":")
        plain = socket.create_connection((host, int(port)), ANSWER_S)
        trusting = ssl.create_default_context(cafile=own.client["ssl.ca.location"])
        with trusting.wrap_socket(plain, server_hostname=host) as client:
            there, _ = broker.accept()
            with there:
                there.settimeout(ANSWER_S)
                for asked in _login(own):
                    client.sendall(len(asked.frame).to_bytes(4) + asked.frame)
                    size = int.from_bytes(client.recv(4))
                    assert client.recv(size)[:4] == b"\0\0\0\7"
                client.sendall(len(METADATA).to_bytes(4) + METADATA)
                assert there.recv(100) == len(METADATA).to_bytes(4) + METADATA
        assert proxy.look() == ("", "")
    finally:
        proxy.close()


def _login(own: Security) -> Iterator[Request]:
    """Go through the requests of a login by PLAIN."""
    yield request(HANDSHAKE, mechanism="PLAIN")
    yield request(AUTHENTICATE, auth_bytes=f"\0{USER}\0{own.password}".encode())


def test_a_client_without_its_login_reaches_nobody(broker: socket.socket, tmp_path: Path) -> None:
    """Its connection ends, and the proxy says what it sent."""
    proxy = Proxy(f"127.0.0.1:{broker.getsockname()[1]}")
    try:
        host, _, port = proxy.door("a", secured("sasl_plaintext", tmp_path)).rpartition(":")
        with socket.create_connection((host, int(port)), ANSWER_S) as client:
            client.sendall(len(METADATA).to_bytes(4) + METADATA)
            assert client.recv(1) == b""
        assert proxy.look().breach == "a client of a sent metadata before its login"
    finally:
        proxy.close()
