"""Somebody else's cluster: reached by --bootstrap, and by --client-properties where it is secured.

The file may be the one that Java's command-line tools take, because that is what people have: it is
translated into librdkafka's names, the language of the adapter protocol. Key material is passed on
as PEM files, which every client can read; a JKS or PKCS12 store is refused with the way to PEM. No
message quotes a value of the file: one of them is a secret.
"""

import re
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from upheld.errors import MachineProblem, UsageProblem
from upheld.supervisor.reaper import RunScope

ANSWER_DEADLINE_S = 10.0
_ADDRESS = re.compile(r"^(\[[0-9a-fA-F:.]+\]|[\w.-]+):\d{1,5}$")
_LIBRDKAFKA = re.compile(
    r"^(security\.protocol|(sasl|ssl)\.\w[\w.]*|enable\.ssl\.certificate\.verification)$"
)
_MEANINGLESS = {  # of Java's names, those whose effect librdkafka has anyway
    "ssl.truststore.type", "ssl.keystore.type", "ssl.protocol", "ssl.enabled.protocols",
    "ssl.truststore.password", "ssl.keystore.password",
}  # fmt: skip
_JAAS_LOGIN = re.compile(
    r"""\b(username|password)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;]+)"""
)


@dataclass(frozen=True)
class ExternalBroker:
    """A cluster that has answered; it is not ours, so nothing of it is changed or ended."""

    bootstrap: str
    version: str
    client: dict[str, str] = field(repr=False)
    why: str = "--bootstrap is given"
    kind: Literal["external"] = "external"
    ours: Literal[False] = False

    @property
    def pids(self) -> list[int]:
        """None of ours."""
        return []

    def ended(self, within_s: float) -> bool:
        """Whether it ends is its owner's business: wait, and say no."""
        threading.Event().wait(within_s)
        return False

    def kill(self) -> None:
        """Nobody else's cluster is ended."""
        raise AssertionError

    def revive(self) -> None:
        """Nor started."""
        raise AssertionError

    def close(self) -> None:
        """Leave it as it is."""


def open_external(run: RunScope, bootstrap: str, client_properties: Path | None) -> ExternalBroker:
    """The cluster, once it has answered a metadata request with these properties."""
    for address in bootstrap.split(","):
        if not _ADDRESS.match(address.strip()):
            raise UsageProblem(
                f"--bootstrap {bootstrap!r} is not HOST:PORT, or several of them with commas."
            )
    client = (
        {} if client_properties is None else read_client_properties(client_properties, run.scratch)
    )
    return ExternalBroker(bootstrap, _answer(bootstrap, client, client_properties), client)


def _answer(bootstrap: str, client: dict[str, str], source: Path | None) -> str:
    """What the cluster says of itself, or a problem that says why it does not."""
    complaints: list[KafkaError] = []
    settings: dict[str, Any] = client | {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "error_cb": complaints.append,
        "reconnect.backoff.max.ms": 500,
    }
    try:
        admin = AdminClient(settings)
    except KafkaException as refusal:
        raise UsageProblem(_refused_setting(str(refusal.args[0].str()), client, source)) from None
    deadline = time.monotonic() + ANSWER_DEADLINE_S
    while time.monotonic() < deadline:
        try:
            answer = admin.list_topics(timeout=1.0)
        except KafkaException:
            admin.poll(0)
        else:
            return f"cluster {answer.cluster_id} of {len(answer.brokers)} nodes"
        if any(complaint.code() == KafkaError._AUTHENTICATION for complaint in complaints):
            raise UsageProblem(f"{bootstrap} refuses the credentials of {source or 'nobody'}.")
    reasons = [c.str() for c in complaints if c.code() != KafkaError._ALL_BROKERS_DOWN]
    reason = f" ({reasons[-1][:200]})" if reasons else ""
    raise MachineProblem(
        f"The bootstrap {bootstrap} does not answer within {ANSWER_DEADLINE_S:.0f} s{reason}; is "
        "a broker "
        "listening there, and does its listener want --client-properties?"
    )


def _refused_setting(complaint: str, client: dict[str, str], source: Path | None) -> str:
    """The sentence for a setting that librdkafka refuses: it names the property, never the
    value.
    """
    named = [name for name in sorted(client, key=len, reverse=True) if name in complaint]
    return (
        f"{source}: librdkafka refuses {named[0] if named else 'a property'}; its manual has the "
        "names."
    )


def read_client_properties(source: Path, scratch: Path) -> dict[str, str]:
    """The security properties of a Java-style or librdkafka-style file, by their librdkafka
    names.
    """
    try:
        given = _parse(source)
    except (OSError, UnicodeDecodeError) as failure:
        reason = getattr(failure, "strerror", None) or "it is not UTF-8 text"
        raise UsageProblem(f"--client-properties {source} cannot be read: {reason}.") from None
    client: dict[str, str] = {}
    for name, value in given.items():
        if name == "sasl.jaas.config":
            client |= _login(value, source)
        elif name == "security.protocol":
            client[name] = value.lower()
        elif name == "ssl.endpoint.identification.algorithm":
            client[name] = value or "none"
        elif name in ("ssl.truststore.location", "ssl.keystore.location"):
            client |= _pem_store(name, value, given, source)
        elif name in _PEM_TEXTS:
            client[_PEM_TEXTS[name]] = _pem_file(scratch, _PEM_TEXTS[name], value)
        elif name in _MEANINGLESS:
            continue
        elif name.endswith(".class") or not _LIBRDKAFKA.match(name):
            raise UsageProblem(
                f"{source}: {name} is no security property that the adapter protocol can pass on; "
                "keep security.protocol, sasl.* and ssl.* only."
            )
        else:
            client[name] = value
    return client


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_PEM_TEXTS = {  # Java's names for PEM inside the file, and librdkafka's for a file that holds it
    "ssl.truststore.certificates": "ssl.ca.location",
    "ssl.keystore.certificate.chain": "ssl.certificate.location",
    "ssl.keystore.key": "ssl.key.location",
}


def _login(jaas: str, source: Path) -> dict[str, str]:
    words = {word: _unquoted(text) for word, text in _JAAS_LOGIN.findall(jaas)}
    if set(words) != {"username", "password"}:
        raise UsageProblem(
            f"{source}: sasl.jaas.config holds no username and password; give sasl.username and "
            "sasl.password, or librdkafka's own names for another mechanism."
        )
    return {f"sasl.{word}": text for word, text in words.items()}


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] in "\"'" else text


def _pem_store(name: str, location: str, given: dict[str, str], source: Path) -> dict[str, str]:
    kind = given.get(name.replace("location", "type"), "JKS").upper()
    if kind != "PEM":
        raise UsageProblem(
            f"{source}: {name} is a {kind} store, which not all clients read; export it "
            "as PEM (openssl pkcs12, or keytool -exportcert -rfc) and "
            f"set {name.replace('location', 'type')}=PEM."
        )
    if not (source.parent / location).is_file():
        raise UsageProblem(f"{source}: the file of {name} does not exist.")
    path = str((source.parent / location).resolve())
    if name == "ssl.truststore.location":
        return {"ssl.ca.location": path}
    return {"ssl.certificate.location": path, "ssl.key.location": path}


def _pem_file(scratch: Path, name: str, text: str) -> str:
    path = scratch / f"{name.removesuffix('.location')}.pem"
    path.touch(mode=0o600)
    path.write_text(text if text.endswith("\n") else text + "\n")
    return str(path)


def _parse(source: Path) -> dict[str, str]:
    """Java's properties format: `name=value`, `name: value`, comments, continued lines, backslash
    escapes.
    """
    given: dict[str, str] = {}
    lines = enumerate(source.read_text(encoding="utf-8").splitlines(), start=1)
    for number, line in lines:
        text = line.strip()
        if not text or text[0] in "#!":
            continue
        # An odd number of backslashes continues the line.
        while re.search(r"(?<!\\)(\\\\)*\\$", text):
            text = text[:-1] + next(lines, (0, ""))[1].strip()
        match = re.match(r"^([\w.-]+)\s*[=:]\s*(.*)$", text)
        if match is None:
            raise UsageProblem(f"{source}, line {number}: this is not name=value.")
        given[match[1]] = re.sub(
            r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), match[2]
        )
    return given
