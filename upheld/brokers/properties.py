"""Client properties of a secured cluster, in librdkafka's names.

The file may be the one of Java's command-line tools, because most users have it. It is translated
into librdkafka's names, the language of the adapter protocol. Key material is passed on as PEM
files, which every client can read. A JKS or PKCS12 store is refused, and the message says how to
get PEM. No message quotes a value of the file: one of them is a secret.
"""

import re
from pathlib import Path
from typing import Final

from upheld.errors import UsageProblem
from upheld.masking import KNOWN

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}
# Java's names for PEM inside the file -> librdkafka's for a file that holds it
_PEM_TEXTS: Final = {
    "ssl.truststore.certificates": "ssl.ca.location",
    "ssl.keystore.certificate.chain": "ssl.certificate.location",
    "ssl.keystore.key": "ssl.key.location",
}
_LIBRDKAFKA: Final = re.compile(
    r"^(security\.protocol|(sasl|ssl)\.\w[\w.]*|enable\.ssl\.certificate\.verification)$"
)
# The names of Java's whose effect librdkafka has anyway.
_MEANINGLESS: Final = {
    "ssl.truststore.type", "ssl.keystore.type", "ssl.protocol", "ssl.enabled.protocols",
    "ssl.truststore.password", "ssl.keystore.password",
}  # fmt: skip
_JAAS_LOGIN: Final = re.compile(
    r"""\b(username|password)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;]+)"""
)


def read_client_properties(source: Path, scratch: Path) -> dict[str, str]:
    """Return the security properties of a file, in librdkafka's names.

    The file has Java's names or librdkafka's.

    Raises:
        UsageProblem: The file cannot be read, or holds another property or store.
    """
    try:
        given = _parse(source)
    except (OSError, UnicodeDecodeError) as failure:
        reason = getattr(failure, "strerror", None) or "it is not UTF-8 text"
        raise UsageProblem(f"--client-properties {source} cannot be read: {reason}.") from None
    client: dict[str, str] = {}
    KNOWN.learn_all(given)
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
    """Read Java's properties format.

    It has `name=value`, `name: value`, comments, continued lines and backslash escapes.
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
