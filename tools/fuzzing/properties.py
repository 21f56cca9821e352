"""The file of `--client-properties`."""

from typing import Final

from fuzzing import file_of, folder, refused
from upheld.brokers.properties import read_client_properties

SEEDS: Final = (
    b"security.protocol=SASL_SSL\nsasl.mechanism: PLAIN\n# a comment\n! another\n"
    b"sasl.jaas.config=org.apache.kafka.Login required \\\n  username=\"a\" password='b\\'c';\n"
    b"ssl.truststore.type=PEM\nssl.truststore.location=rows.txt\nssl.ca.location=/x\n"
    b"ssl.truststore.certificates=-----BEGIN CERTIFICATE-----\\n x\n"
    b"ssl.endpoint.identification.algorithm=\n",
    b"security.protocol" + b"\\" * 4_001 + b"\n=x\n",
)
WORDS: Final = (
    *(b"security.protocol", b"sasl.jaas.config", b"ssl.keystore.location", b"ssl.keystore.type"),
    *(b"ssl.keystore.key", b"ssl.ca.location", b"sasl.username", b"username=", b"password="),
    *(b'"', b"'", b"\\", b"\\\n", b"=", b":", b"#", b"!", b"\r", b"\0", b"PEM", b"JKS", b"\\u0000"),
)


def properties(data: bytes) -> None:
    """Translate the properties; each of them is text that a client takes."""
    path = file_of("client.properties", data)
    with refused():
        for name, value in read_client_properties(path, folder()).items():
            assert "\0" not in name + value
