"""The security of a listener, in Java's names for the broker.

Clients get it in librdkafka's names. The secured listener exists so that the way to real clusters
(TLS, a password) is tried in the harness's own tests. Certificate and password are new each time,
live in the run's scratch folder, and reach no log.
"""

import os
import secrets
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from upheld.brokers.java import Java
from upheld.errors import MachineProblem
from upheld.masking import KNOWN

_KEYTOOL_DEADLINE_S: Final = 60
_USER: Final = "upheld"
_LOGIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SAID_CHARS: Final = 200


@dataclass(frozen=True)
class Security:
    """A listener's protocol, and its properties for the broker and for clients."""

    protocol: str
    broker: dict[str, str] = field(default_factory=dict, repr=False)
    client: dict[str, str] = field(default_factory=dict, repr=False)


PLAINTEXT: Final = Security("PLAINTEXT")


def secure_listener(folder: Path, java: Java) -> Security:
    """Return SASL_SSL with a new certificate and password.

    The keytool beside any Java makes the certificate.
    """
    password = secrets.token_urlsafe(24)
    KNOWN.learn("ssl.keystore.password", password)
    keystore = folder / "broker.p12"
    certificate = folder / "ca.pem"
    store = ["-keystore", str(keystore), "-storetype", "PKCS12", "-alias", "broker"]
    store += ["-storepass:env", "STORE_PASSWORD"]
    names = ["-dname", "CN=upheld", "-ext", "san=ip:127.0.0.1,dns:localhost", "-ext", "bc:c"]
    key = ["-keyalg", "EC", "-groupname", "secp256r1", "-validity", "7"]
    _keytool(java, password, "-genkeypair", *key, *names, *store)
    _keytool(java, password, "-exportcert", "-rfc", "-file", str(certificate), *store)
    keystore.chmod(0o600)
    jaas = f'{_LOGIN_MODULE} required user_{_USER}="{password}";'
    return Security(
        protocol="SASL_SSL",
        broker={
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.client.plain.sasl.jaas.config": jaas,
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(keystore),
            "ssl.keystore.password": password,
        },
        client={
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "PLAIN",
            "sasl.username": _USER,
            "sasl.password": password,
            "ssl.ca.location": str(certificate),
        },
    )


def _keytool(java: Java, password: str, *arguments: str) -> None:
    """Run keytool with the password in its environment.

    Every user may read a process's arguments.
    """
    try:
        subprocess.run(
            [java.home / "bin" / "keytool", "-J-XX:-UsePerfData", *arguments],
            env={"PATH": os.defpath, "STORE_PASSWORD": password},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_KEYTOOL_DEADLINE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as failure:
        output: bytes = getattr(failure, "stdout", None) or str(failure).encode()
        said = output.decode(errors="replace").strip()
        raise MachineProblem(
            f"The keytool of {java.home} makes no certificate ({said[:_SAID_CHARS]}); name another "
            "Java with UPHELD_JAVA."
        ) from None
