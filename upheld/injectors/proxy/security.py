"""The security of a door: TLS and a login, which both end at the proxy.

An application as it is deployed reaches its broker by TLS, and with a password. The proxy has to
read what passes, so it takes the place of such a listener. It has a certificate of the run, and
checks the password itself. It reaches the broker behind it in plain text.

A login is that of Kafka since 1.0 (KIP-152): SaslHandshake names the mechanism, and
SaslAuthenticate carries its messages. PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677) are known.
"""

import secrets
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kio.schema.errors import ErrorCode

from upheld import extras
from upheld.commands import CREDENTIALS
from upheld.errors import MachineProblem
from upheld.injectors.proxy.frames import (
    API_VERSIONS,
    NoRequestError,
    Request,
    encode,
    schemas,
)
from upheld.masking import KNOWN
from upheld.protocol.subject import Secured

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
HANDSHAKES: Final = 1  # version 0 sends what follows without Kafka's frames
PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS: Final = 4096  # of SCRAM, the fewest that Kafka takes
USER: Final = "upheld"
EXTRA: Final = "tls"


@dataclass(frozen=True)
class Security:
    """The security of a door.

    Attributes:
        protocol: Its protocol, as clients name it.
        tls: The certificate of the door, if it speaks TLS.
        password: The password of the user `upheld`, if there is a login.
        client: Properties for clients, by their names in librdkafka.
    """

    protocol: Secured
    tls: ssl.SSLContext | None = None
    password: str = field(default="", repr=False)
    client: dict[str, str] = field(default_factory=dict, repr=False)

    def login(self) -> "Login | None":
        """Return the login of a new connection; None if there is none."""
        return Login(self.password) if self.password else None


def secured(protocol: Secured, folder: Path) -> Security:
    """Return the security of doors: a new certificate, and a new password.

    Args:
        protocol: The protocol of their clients.
        folder: Where the certificate authority is written, for clients.

    Raises:
        MachineProblem: The extra `tls` is not installed.
    """
    if missing := extras.lack(EXTRA):
        raise MachineProblem(f"security = {protocol!r} cannot be spoken: {missing}.")
    client: dict[str, str] = {"security.protocol": protocol}
    tls = None
    if protocol.endswith("ssl"):
        import trustme

        authority = trustme.CA()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1", "localhost").configure_cert(tls)
        folder.mkdir(parents=True, exist_ok=True)
        authority.cert_pem.write_to_path(str(folder / "ca.pem"))
        client[CREDENTIALS["ca_file"]] = str(folder / "ca.pem")
    password = ""
    if protocol.startswith("sasl"):
        password = secrets.token_urlsafe(24)
        KNOWN.learn(CREDENTIALS["password"], password)
        client |= {
            "sasl.mechanism": PLAIN,
            CREDENTIALS["username"]: USER,
            CREDENTIALS["password"]: password,
        }
    return Security(protocol, tls, password, client)


class Login:
    """The login of one connection, from its handshake on."""

    def __init__(self, password: str) -> None:
        self.password = password
        self.is_over = False
        self.mechanism = ""
        self._steps: Iterator[bytes] | None = None
        self._said = b""  # what the client said last

    def takes(self, request: Request) -> bool:
        """Return whether a request is one of a login.

        Raises:
            NoRequestError: It is another one, before the login is over: a broker ends such a
                connection.
        """
        if request.api_key in {SASL_HANDSHAKE, SASL_AUTHENTICATE}:
            return True
        if not self.is_over and request.api_key != API_VERSIONS:
            raise NoRequestError(f"{request.api} before its login")
        return False

    def answer_to(self, request: Request) -> bytes:
        """Return the answer to a request of a login.

        Raises:
            NoRequestError: No broker answers it.
        """
        message: Any = request.decoded()
        if request.api_key == SASL_HANDSHAKE:
            if request.version < HANDSHAKES:
                raise NoRequestError("a SaslHandshake of version 0, which is older than Kafka 1.0")
            self.mechanism = message.mechanism
            self._steps = None
            is_known = self.mechanism in MECHANISMS
            code = ErrorCode.none if is_known else ErrorCode.unsupported_sasl_mechanism
            return _answer(request, error_code=code, mechanisms=MECHANISMS)
        said, error = self._next(message.auth_bytes)
        code = ErrorCode.sasl_authentication_failed if error else ErrorCode.none
        return _answer(request, error_code=code, error_message=error or None, auth_bytes=said)

    def _next(self, said: bytes) -> tuple[bytes, str]:
        """Return what is said next, and why the login has failed; empty if it has not."""
        if self.mechanism not in MECHANISMS:
            raise NoRequestError("a SaslAuthenticate before its SaslHandshake")
        self._said = said
        if self._steps is None:
            self._steps = self._plain() if self.mechanism == PLAIN else self._scram()
        try:
            return next(self._steps), ""
        except (StopIteration, ValueError) as error:
            self._steps = None
            return b"", f"the login by {self.mechanism} has failed: {error or 'it was over'}"

    def _plain(self) -> Iterator[bytes]:
        """Check a password that was sent.

        Raises:
            ValueError: It is another one.
        """
        _, user, password = ([*self._said.split(b"\0"), b"", b"", b""])[:3]
        if (user, password) != (USER.encode(), self.password.encode()):
            raise ValueError("another user, or another password")
        self.is_over = True
        yield b""

    def _scram(self) -> Iterator[bytes]:
        """Check by challenge and response that the other side knows the password.

        Raises:
            ValueError: It does not.
        """
        from scramp import ScramException, ScramMechanism

        mechanism = ScramMechanism(self.mechanism)
        known = mechanism.make_auth_info(self.password, iteration_count=ITERATIONS)
        nobody = mechanism.make_auth_info(secrets.token_urlsafe(), iteration_count=ITERATIONS)
        server = mechanism.make_server(lambda user: known if user == USER else nobody)
        try:
            server.set_client_first(self._said.decode())
            yield server.get_server_first().encode()
            server.set_client_final(self._said.decode())
            self.is_over = True
            yield server.get_server_final().encode()
        except (ScramException, UnicodeDecodeError) as error:
            raise ValueError(str(error)) from None


def _answer(request: Request, **fields: object) -> bytes:
    """Return the frame of an answer to a request."""
    schema: Any = schemas(request.api_key, request.version)[1]
    header: Any = schema.__header_schema__
    return encode(header(correlation_id=request.correlation_id), schema(**fields))
