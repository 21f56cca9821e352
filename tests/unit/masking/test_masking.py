"""A secret is masked in every form in which a program may print it."""

import base64
import html
import json
import os
import re
import stat
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from upheld.masking import KNOWN, MASK, Secrets, private
from upheld.text import printable, visible
from upheld.verdicts import AdapterBreach

PASSWORD = 'p@ss/w+rd: "42"\\ é'
BODY = [base64.b64encode(bytes([n]) * 48).decode() for n in range(1, 9)]
PEM = "\n".join(["-----BEGIN PRIVATE KEY-----", *BODY, "c2hvcnQ=", "-----END PRIVATE KEY-----"])


@pytest.fixture
def known() -> Secrets:
    """Return secrets that nobody else knows."""
    return Secrets()


LOWER = re.sub("%..", lambda code: code[0].lower(), quote(PASSWORD, safe=""))
FORMS = {
    "as-it-is": PASSWORD,
    "json": json.dumps({"password": PASSWORD}),
    "json-unescaped": json.dumps({"password": PASSWORD}, ensure_ascii=False),
    "json-in-json": json.dumps(json.dumps(PASSWORD)),
    "python": repr({"password": PASSWORD}),
    "url": f"redis://:{quote(PASSWORD, safe='')}@host:6379/0",
    "url-lower-case": f"redis://:{LOWER}@host",
    "form": f"password={quote_plus(PASSWORD)}",
    "html": f"<td>{html.escape(PASSWORD)}</td>",
    "java-properties": r"sasl.password=p@ss/w+rd\:\ "
    + PASSWORD.partition(": ")[2].replace("\\", "\\\\").replace(" ", "\\ "),
    "jaas": 'password="' + PASSWORD.replace("\\", "\\\\").replace('"', '\\"') + '";',
    "base64": base64.b64encode(PASSWORD.encode()).decode(),
    "basic-auth": "Basic " + base64.b64encode(f"alice:{PASSWORD}".encode()).decode(),
    "sasl-plain": base64.b64encode(f"\0bob\0{PASSWORD}\0more".encode()).decode(),
    "base64-of-a-url": base64.urlsafe_b64encode(f"u:{PASSWORD}?".encode()).decode(),
}
CORES = ("p@ss", "w+rd", "p%40ss", "w%2Brd")


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_every_form_is_masked(text: str, known: Secrets) -> None:
    """Escaped, percent-encoded or in Base64, alone or in the middle of other text."""
    known.learn("sasl.password", PASSWORD)

    said = known.masked(f"before {text} after")

    assert MASK in said
    assert not any(core in said for core in CORES)
    encoded = base64.b64encode(PASSWORD.encode()).decode().rstrip("=")
    assert not any(encoded[at : at + 8] in said for at in range(len(encoded) - 8))
    assert known.masked_bytes(text.encode()) == known.masked(text).encode()


@pytest.mark.parametrize(
    "text",
    [
        PEM,
        PEM.replace("\n", "\r\n"),
        PEM.replace("\n", "\\n"),
        json.dumps({"ssl.key.pem": PEM}),
        " ".join(PEM.split("\n")),
        "".join(PEM.split("\n")),
        "\n".join(f"2026-01-01 INFO | {line}" for line in PEM.split("\n")),
        "\n".join(reversed(PEM.split("\n"))),
    ],
    ids=["lines", "crlf", "escaped", "json", "spaces", "joined", "logged", "reversed"],
)
def test_a_private_key_is_masked_line_by_line(text: str, known: Secrets) -> None:
    """A design may log a key with a prefix before each line, or in one line."""
    known.learn("ssl.key.pem", PEM)

    said = known.masked(text)

    assert not any(line in said for line in BODY)
    assert "c2hvcnQ=" not in said


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("ssl.key.password", "opensesame", "opensesame"),
        ("ssl.keystore.key", PEM, BODY[3]),
        ("sasl.oauthbearer.client.secret", "0a1b2c3d", "0a1b2c3d"),
        ("sasl.oauthbearer.config", "principal=me secret=s3cr3t-value", "s3cr3t-value"),
        ("sasl.oauthbearer.assertion.private.key.passphrase", "open-it", "open-it"),
        ("sasl.oauthbearer.client.credentials.client.secret", "cc-secret", "cc-secret"),
        ("sasl.jaas.config", 'Login required username="a" password="inner pw";', "inner pw"),
        ("sasl.kerberos.kinit.cmd", "kinit --password pw", "kinit --password pw"),
        ("redis", "redis://:pa%2Fss-word@host:6379/0", "pa/ss-word"),
        ("redis", "redis://:pa/ss-word@host:6379/0", "pa/ss-word"),
        ("redis", "rediss://host/0?password=in-query", "in-query"),
        ("cassandra", "cassandra://user:cass-pw@host:9042/keys", "cass-pw"),
        ("sasl.oauthbearer.token.endpoint.url", "https://id:end-pw@host/token", "end-pw"),
        ("https_proxy", "http://me:proxy-pw@proxy:3128", "proxy-pw"),
        ("DB_PASSWORD", "from-the-environment", "from-the-environment"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI/K7MDENG"),
        ("GITHUB_TOKEN", "ghp_0123456789", "ghp_0123456789"),
        ("STRIPE_API_KEY", "sk_live_0123", "sk_live_0123"),
    ],
)
def test_the_settings_that_hold_a_secret(
    name: str, value: str, secret: str, known: Secrets
) -> None:
    """They are known by their names, and an address by its form."""
    known.learn(name, value)

    said = known.masked(f"{name}={value}; it is {secret}.")

    assert secret not in said
    assert MASK in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bootstrap.servers", "localhost:9092"),
        ("sasl.username", "alice"),
        ("ssl.ca.location", "/etc/ca.pem"),
        ("ssl.key.location", "/etc/key.pem"),
        ("sasl.oauthbearer.method", "OIDC-method"),
        ("sasl.oauthbearer.token.endpoint.url", "https://idp.example/token"),
        ("redis", "redis://localhost:6379/0"),
        ("TOKEN_TTL", "36000000"),
        ("PASSWORD_FILE", "run-secrets-db"),
        ("sasl.password", ""),
    ],
)
def test_the_settings_that_hold_none(name: str, value: str, known: Secrets) -> None:
    """A sentence may still name a host, a user or a file."""
    known.learn(name, value)

    assert known.masked(f"it is {value} here") == f"it is {value} here"


@pytest.mark.parametrize("value", ["a", "pw", "abc", "1234", "kafka", "password", "Test"])
def test_short_and_common_secrets_are_masked_after_their_name(value: str, known: Secrets) -> None:
    """Elsewhere they would mask words and numbers that are no secret."""
    known.learn("sasl.password", value)

    for text in ("sasl.password={}", "sasl.password: {}", '"sasl.password":"{}"'):
        assert known.masked(text.format(value)) == text.format(MASK)
    assert known.masked(f"it is {value} here") == f"it is {value} here"


def test_the_key_in_a_file(known: Secrets, tmp_path: Path) -> None:
    """A design reads the file of `ssl.key.location`, and may log what it read."""
    file = tmp_path / "key.pem"
    file.write_text("-----BEGIN CERTIFICATE-----\nbm8gc2VjcmV0\n-----END CERTIFICATE-----\n" + PEM)
    known.learn_all({"ssl.key.location": str(file), "ssl.ca.location": str(tmp_path / "none")})

    assert BODY[0] not in known.masked(PEM)
    assert known.masked("bm8gc2VjcmV0") == "bm8gc2VjcmV0"


def test_the_environment(known: Secrets) -> None:
    """The place of a file is no secret, whatever the variable is called."""
    known.learn_environment({"APP_CREDENTIALS": "/etc/hosts", "APP_SECRET": "/not/there"})

    assert known.masked("/etc/hosts /not/there") == f"/etc/hosts {MASK}"


def test_every_way_out_masks() -> None:
    """An exception, a line and a card hold no secret that is known by then."""
    KNOWN.learn("sasl.password", "hunter2-hunter2")

    for said in (
        str(AdapterBreach("it said hunter2-hunter2")),
        visible("x" * 5000 + "hunter2-hunter2"),
        visible("x" * 1400 + "hunter2-hunter2" + "y" * 5000),
        printable("a\nhunter2-hunter2\n"),
    ):
        assert "hunter2" not in said


@pytest.mark.parametrize("size", range(1, 9))
def test_the_beginning_of_a_secret_is_held(size: int, known: Secrets) -> None:
    """Text that cannot begin one is written at once."""
    known.learn("sasl.password", "hunter2!x")

    assert known.begun(b"it is " + b"hunter2!x"[:size]) == size
    assert known.begun(b"it is hunter3") == 0


def test_a_private_file(tmp_path: Path) -> None:
    """No other user reads it, also if it was there and readable."""
    path = tmp_path / "log"
    path.write_text("older")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        with open(path, "w", opener=private) as file:
            file.write("new")
        with open(tmp_path / "new", "w", opener=private):
            pass
    finally:
        os.umask(before)

    assert path.read_text() == "new"
    for each in (path, tmp_path / "new"):
        assert stat.S_IMODE(each.stat().st_mode) == 0o600
