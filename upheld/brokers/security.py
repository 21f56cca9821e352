"""Security of a listener, said twice: for the broker in Java's names and for clients in
librdkafka's.

The secured listener exists so that the way in for real clusters (TLS, a password) is tried in our
own tests. Certificate and password are made anew each time, live in the run's scratch folder, and
reach no log.
"""

import os
import secrets
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from upheld.brokers.java import Java
from upheld.errors import MachineProblem

_KEYTOOL_DEADLINE_S = 60
_USER = "upheld"


@dataclass(frozen=True)
class Security:
    """One listener's protocol, what the broker must be told of it, and what a client must."""

    protocol: str
    broker: dict[str, str] = field(default_factory=dict, repr=False)
    client: dict[str, str] = field(default_factory=dict, repr=False)


PLAINTEXT = Security("PLAINTEXT")


def secure_listener(folder: Path, java: Java) -> Security:
    """SASL_SSL with a fresh certificate and password; the keytool beside any Java makes the
    former.
    """
    password = secrets.token_urlsafe(24)
    keystore, certificate = folder / "broker.p12", folder / "ca.pem"
    store = [
        "-keystore",
        str(keystore),
        *["-storetype", "PKCS12", "-alias", "broker", "-storepass:env", "STORE_PASSWORD"],
    ]
    names = ["-dname", "CN=upheld", "-ext", "san=ip:127.0.0.1,dns:localhost", "-ext", "bc:c"]
    _keytool(
        java,
        password,
        "-genkeypair",
        "-keyalg",
        "EC",
        "-groupname",
        "secp256r1",
        "-validity",
        "7",
        *names,
        *store,
    )
    _keytool(java, password, "-exportcert", "-rfc", "-file", str(certificate), *store)
    keystore.chmod(0o600)
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{_USER}="{password}";'
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
    """Run keytool with the password in its environment: anybody may read a process's arguments."""
    try:
        subprocess.run(
            [java.home / "bin" / "keytool", "-J-XX:-UsePerfData", *arguments],
            env={"PATH": os.defpath, "STORE_PASSWORD": password},
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_KEYTOOL_DEADLINE_S, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as failure:
        said = (
            (getattr(failure, "stdout", None) or str(failure).encode())
            .decode(errors="replace")
            .strip()
        )
        raise MachineProblem(
            f"The keytool of {java.home} makes no certificate ({said[:200]}); name another Java "
            "with UPHELD_JAVA."
        ) from None
