"""The secrets that this process knows, and the mask over them in what it writes.

A secret is learned by its name and value when it enters: from client settings, from the address of
a store, from an environment. From then on no sentence, card, report or log holds it. Of each secret
the forms that a program may print are known too: escaped, percent-encoded, and in Base64, alone or
with other text around it.

A secret of up to three characters, a short number, or a common word would mask too much. It is
masked only after its name, as in `sasl.password=abc`.
"""

import contextlib
import html
import json
import os
import re
import threading
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, quote_plus, unquote, unquote_plus, urlsplit

MASK: Final = "***"
LEAST_CHARS: Final = 4  # of a secret that is masked wherever it stands
LEAST_DIGITS: Final = 8  # the same, of one that is a number: an offset has fewer
LEAST_ENCODED: Final = 8  # of the Base64 text that no other text around the secret changes
LEAST_LINE: Final = 8  # of a line of a secret of several lines
MOST_BYTES: Final = 1 << 16  # of a file or value that is read as a secret
COMMON: Final = frozenset(
    {
        "admin", "broker", "cassandra", "default", "design", "false", "guest",
        "kafka", "none", "null", "password", "plain", "public", "redis",
        "root", "sasl", "secret", "test", "token", "true", "upheld",
        "user", "username",
    }
)  # fmt: skip
_NAMES: Final = re.compile(
    r"passw(or)?d|passphrase|pwd|secret|token|credential|api.?key|access.?key|private.?key"
    r"|key\.pem|keystore\.key|jaas|oauthbearer\.(config|extensions|.*assertion)|kinit\.cmd",
    re.IGNORECASE,
)
# Names that say where a secret is, how it is sent or how long it lasts.
_HARMLESS: Final = re.compile(
    r"(file|path|location|dir|url|uri|endpoint|method|mechanisms?|type|class|ms|seconds|ttl|size"
    r"|name|algorithm)$",
    re.IGNORECASE,
)
_LOGIN: Final = re.compile(r"://([^\s/?#]*|[^\s]*)@")
_PAIR: Final = re.compile(r"""([\w.-]+)\s*[=:]\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;,&]+)""")
_PAIRS: Final = (
    "{0}={1}",
    "{0} = {1}",
    "{0}:{1}",
    "{0}: {1}",
    '{0}="{1}"',
    '"{0}":"{1}"',
    '"{0}": "{1}"',
    "'{0}': '{1}'",
)
_PRIVATE_KEYS: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*-----", re.DOTALL
)
_HEADER: Final = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]+-----")


class _Forms(NamedTuple):
    """The texts to replace, the longest first, each with what takes its place."""

    text: tuple[tuple[str, str], ...] = ()
    data: tuple[tuple[bytes, bytes], ...] = ()


class Secrets:
    """The secrets that are known so far; several threads may learn and mask."""

    def __init__(self) -> None:
        self._forms = _Forms()
        self._masks: dict[str, str] = {}
        self._learned = set[tuple[str, str]]()
        self._lock = threading.Lock()

    def learn(self, name: str, value: str, *, is_secret: bool = False) -> None:
        """Add what is secret in a setting: all of its value, or the login in an address.

        Args:
            name: The name of the setting; it says whether the value is a secret.
            value: The value as it was given.
            is_secret: Whether all of it is a secret, whatever its name.
        """
        if (name, value) in self._learned and not is_secret:
            return
        masks: dict[str, str] = {}
        found = [(name, value[:MOST_BYTES])] if is_secret else []
        for called, secret in (*found, *_secrets_in(name, value[:MOST_BYTES])):
            masks |= _masks(called, secret)
        with self._lock:
            self._learned.add((name, value))
            if masks.keys() <= self._masks.keys():
                return
            self._masks = masks | self._masks
            ordered = sorted(self._masks.items(), key=lambda form: -len(form[0]))
            self._forms = _Forms(
                tuple(ordered), tuple((_data(form), _data(mask)) for form, mask in ordered)
            )

    def learn_all(self, settings: dict[str, str]) -> None:
        """Add what is secret in client settings, also in the key file that they name."""
        for name, value in settings.items():
            self.learn(name, value)
            if name.endswith("key.location"):
                with contextlib.suppress(OSError, ValueError):
                    self.learn("ssl.key.pem", _beginning(Path(value)))

    def learn_environment(self, environment: dict[str, str]) -> None:
        """Add what is secret in environment variables, by their names.

        The place of a file is no secret.
        """
        for name, value in environment.items():
            if not (value.startswith("/") and os.path.lexists(value)):
                self.learn(name, value)

    def forget(self) -> None:
        """Forget every secret."""
        with self._lock:
            self._learned = set()
            self._masks = {}
            self._forms = _Forms()

    def masked(self, text: str) -> str:
        """Return a text with every secret in it masked."""
        for form, mask in self._forms.text:
            if form in text:
                text = text.replace(form, mask)
        return text

    def masked_bytes(self, data: bytes) -> bytes:
        """Return bytes with every secret in them masked."""
        for form, mask in self._forms.data:
            if form in data:
                data = data.replace(form, mask)
        return data

    def begun(self, data: bytes) -> int:
        """Return how many last bytes of masked data may be the beginning of a secret."""
        most = 0
        for form, _ in self._forms.data:
            # A form as long as what is held already, or shorter, cannot begin before it.
            at = data.find(form[:1], max(0, len(data) - len(form) + 1), len(data) - most)
            while at >= 0:
                if form.startswith(data[at:]):
                    most = len(data) - at
                    break
                at = data.find(form[:1], at + 1, len(data) - most)
        return most


KNOWN: Final = Secrets()  # of this process


def private(path: str, flags: int) -> int:
    """Open a file that no other user may read: an `opener` for `open`."""
    descriptor = os.open(path, flags, 0o600)
    with contextlib.suppress(OSError):  # a file system without modes
        os.fchmod(descriptor, 0o600)  # an older run may have left it readable
    return descriptor


def _secrets_in(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Go through the secrets in a setting, each with the name that it has there."""
    if "://" in value:
        yield from _secrets_of_address(name, value)
        return
    if not _NAMES.search(name) or _HARMLESS.search(name):
        return
    yield name, value
    for called, inner in _PAIR.findall(value):
        if _NAMES.search(called) and not _HARMLESS.search(called):
            yield called, _unquoted(inner)


def _secrets_of_address(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Go through the passwords in an address, and the secrets among its parameters."""
    for login in _LOGIN.findall(value):
        yield name, login.partition(":")[2]
    with contextlib.suppress(ValueError):  # it is no address
        url = urlsplit(value)
        yield name, url.password or ""
        for called, inner in parse_qsl(f"{url.query}&{url.fragment}"):
            if _NAMES.search(called):
                yield called, inner


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] in "\"'" else text


def _masks(name: str, secret: str) -> dict[str, str]:
    """Return the forms of a secret, and what takes the place of each."""
    secret = secret.strip()
    if not secret:
        return {}
    if (
        len(secret) < LEAST_CHARS
        or secret.lower() in COMMON
        or (secret.isdecimal() and len(secret) < LEAST_DIGITS)
    ):
        return _after_its_name(name, secret)
    plain = {secret, unquote(secret), unquote_plus(secret)}
    lines = [line.strip() for line in secret.splitlines()]
    if len(lines) > 1:
        plain |= {line for line in lines if len(line) >= LEAST_LINE and not _HEADER.match(line)}
    forms = set[str]()
    for each in plain:
        if len(each) >= LEAST_CHARS:
            forms |= _written(each)
    return dict.fromkeys(forms, MASK)


def _after_its_name(name: str, secret: str) -> dict[str, str]:
    """Return the ways in which a setting is written, with its value masked."""
    return {pair.format(name, secret): pair.format(name, MASK) for pair in _PAIRS}


def _written(secret: str) -> set[str]:
    """Return the forms in which a program may write a secret."""
    escaped = json.dumps(secret)[1:-1]
    upper = {quote(secret, safe=""), quote_plus(secret), quote(secret)}
    lower = {re.sub("%..", lambda code: code[0].lower(), form) for form in upper}
    forms = {secret, escaped, json.dumps(escaped)[1:-1], repr(secret)[1:-1], html.escape(secret)}
    forms.add(json.dumps(secret, ensure_ascii=False)[1:-1])
    forms.add(json.dumps(secret)[1:-1].replace("/", "\\/"))
    forms.add(re.sub(r"([\\:=#! ])", r"\\\1", secret).replace("\n", "\\n"))  # Java's properties
    forms.add(re.sub(r"([\\\"'])", r"\\\1", secret))  # JAAS, and shells
    return forms | upper | lower | set(_encoded(secret.encode(errors="surrogateescape")))


def _encoded(secret: bytes) -> Iterator[str]:
    """Go through the Base64 texts of a secret, whatever stands before and behind it."""
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(secret).decode().rstrip("=")
        for before, mixed in ((0, 0), (1, 2), (2, 3)):
            whole = encode(bytes(before) + secret).decode().rstrip("=")
            # The first characters hold bits of what stands before, the last one of what follows.
            inner = whole[mixed : len(whole) - bool((before + len(secret)) % 3)]
            if len(inner) >= LEAST_ENCODED:
                yield inner


def _data(text: str) -> bytes:
    return text.encode(errors="surrogateescape" if _is_escaped(text) else "replace")


def _is_escaped(text: str) -> bool:
    return all(not "\ud800" <= char <= "\udfff" or "\udc80" <= char <= "\udcff" for char in text)


def _beginning(file: Path) -> str:
    """Return the beginning of a file; of a PEM file, its private keys."""
    with file.open("rb") as read:
        text = read.read(MOST_BYTES).decode(errors="replace")
    return "\n".join(_PRIVATE_KEYS.findall(text))
