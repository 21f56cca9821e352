"""The doctor names prepared mistakes rightly, on one broker for all.

Each is a small variant of examples/orders, which itself has none. They are visited side by side.
"""

import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from upheld.brokers import Broker
from upheld.doctor.findings import Case, Finding, findings
from upheld.doctor.visit import Patience, Site, visit
from upheld.protocol.manifest import load
from upheld.supervisor.reaper import RunScope

ORDERS: Final = Path(__file__).parents[2] / "examples" / "orders"
CHECKPOINTS: Final = Path(__file__).parents[1] / "support" / "applications" / "checkpoints"
REFUNDS: Final = CHECKPOINTS.with_name("refunds")
AT_ONCE: Final = 3
DONE_S: Final = 120.0  # of all of them, on a busy machine
IN_A_THREAD: Final = """\
    threading.Thread(target=main).start()
    threading.Event().wait()"""
SECURED: Final = """
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": os.environ["USERNAME"],
            "sasl.password": os.environ["PASSWORD"],
            "ssl.ca.location": os.environ["CA_FILE"],"""
TOLD: Final = """
USERNAME = "{username}"
PASSWORD = "{password}"
CA_FILE = "{ca_file}"
"""
READY_BY_LOG: Final = '[signals]\nready = "log:started"\nstart_s = 8\n\n'
START: Final = "    signal.signal(signal.SIGTERM, lambda *_: stopping.set())\n"

MAKES_A_TOPIC: Final = """\
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": os.environ["KAFKA"]})
    for made in admin.create_topics([NewTopic(os.environ["GROUP"] + "-prices", 1)]).values():
        made.result()
"""


class Variant(NamedTuple):
    """An application with one mistake.

    Attributes:
        codes: The finding that names it, and others that may follow from it.
        app: A text of app.py, and the text in its place.
        design: The same of design.toml.
        patience: How long it is waited for.
        folder: Where the application is that it is made of.
    """

    codes: tuple[str, ...]
    app: Mapping[str, str] = {}
    design: Mapping[str, str] = {}
    patience: Patience = Patience()
    folder: Path = ORDERS


VARIANTS: Final = {
    "wrong topic": Variant(
        ("topic", "never-ready"),
        {'[os.environ["ORDERS"]]': '["orders"]'},
        patience=Patience(start_s=8),
    ),
    "wrong output": Variant(
        ("output-topic", "stalled", "stop", "ignores-stop"),
        {"def main() -> None:": 'def main() -> None:\n    os.environ["COSTS"] = "costs"'},
        patience=Patience(start_s=20, idle_s=2),
    ),
    "wrong group": Variant(("group",), {'os.environ["GROUP"]': 'os.environ["GROUP"] + "-v2"'}),
    "a topic of its own": Variant(
        ("internal-topics",),
        {START: START + MAKES_A_TOPIC},
    ),
    "auto-commit on": Variant(("auto-commit", "mode"), folder=ORDERS / "naive"),
    "auto-commit beside transactions": Variant(
        ("auto-commit",),
        {
            '"enable.auto.commit": False': (
                '"enable.auto.commit": True, "auto.commit.interval.ms": 100'
            )
        },
    ),
    "read_uncommitted": Variant(("read-uncommitted",), {"read_committed": "read_uncommitted"}),
    "reset = latest": Variant(("reset-latest",), {'"earliest"': '"latest"'}),
    "never ready": Variant(
        ("never-ready",), design={"[input.orders]": f"{READY_BY_LOG}[input.orders]"}
    ),
    "exits at once": Variant(("exits",), {START: "    raise SystemExit(3)\n"}),
    "ignores SIGTERM": Variant(
        ("ignores-stop",),
        {"lambda *_: stopping.set()": "signal.SIG_IGN"},
        patience=Patience(stop_s=2),
    ),
    "dies without exiting": Variant(
        ("stalled", "stop"),
        {
            START: "",
            "producer.commit_transaction()": (
                'producer.commit_transaction()\n        raise OSError("no price list")'
            ),
            '":\n    main()': '":\n' + IN_A_THREAD,
        },
        patience=Patience(idle_s=3),
    ),
    "wrong format": Variant(("format",), {"json.dumps(": "str("}),
    "model disagrees": Variant(("model",), folder=ORDERS / "wrong"),
    "peer outside the fence": Variant(
        ("peer",),
        {
            START: f"{START}    import socket\n"
            '    peer = socket.create_connection(("127.0.0.1", int(os.environ["PEER"])))\n'
        },
        {"[process.app.environment]": '[process.app.environment]\nPEER = "PORT"'},
    ),
    "none": Variant(()),
    "TLS and a password": Variant(
        (),
        {
            each: f"{each}{SECURED}"
            for each in (
                '"group.id": os.environ["GROUP"],',
                '"transactional.id": os.environ["TRANSACTIONAL_ID"],',
            )
        },
        {
            'shape = "map"\n': 'shape = "map"\nsecurity = "sasl_ssl"\n',
            "[process.app.environment]\n": f"[process.app.environment]{TOLD}",
        },
    ),
    "two processes": Variant(
        (),
        design={
            "[process.app]\n": "[process.app]\ncount = 2\n",
            "{application_id}-{instance}": "{application_id}-{process}",
        },
    ),
    "progress elsewhere": Variant((), folder=CHECKPOINTS),
    "two inputs": Variant((), folder=REFUNDS),
    "an input that it does not read": Variant(
        ("topic", "stalled"),
        {"consumer.subscribe(list(SIGNS))": "consumer.subscribe(list(SIGNS)[:1])"},
        folder=REFUNDS,
    ),
}


@pytest.fixture(scope="module")
def peer() -> Iterator[int]:
    """Yield the port of a server that is neither the broker nor declared."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def visits(
    broker: Broker, run_scope: RunScope, peer: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[list[Finding]]]]:
    """Yield what is found in each variant, some of which are visited at a time."""
    folder = tmp_path_factory.mktemp("doctor")
    said: list[str] = []

    def found(name: str) -> list[Finding]:
        variant = VARIANTS[name]
        manifest = load(str(written(variant, folder / name.replace(" ", "-"), peer)))
        site = Site(run_scope, broker, folder / "logs")
        return findings(Case(manifest, visit(site, manifest, variant.patience, said.append)))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(found, name) for name in VARIANTS}


def written(variant: Variant, folder: Path, peer: int) -> Path:
    """Write a variant, each text of which has to be in the original."""
    folder.mkdir()
    for name, changes in (("app.py", variant.app), ("design.toml", variant.design)):
        text = (variant.folder / name).read_text()
        for old, new in changes.items():
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        text = text.replace('"../modelled/', f'"{ORDERS}/modelled/')
        samples = str(ORDERS / "orders.jsonl")
        for sample in (
            "../../../../examples/orders/orders.jsonl",
            "../orders.jsonl",
            "orders.jsonl",
        ):
            text = text.replace(f'"{sample}"', f'"{samples}"')
        (folder / name).write_text(text.replace('"PORT"', f'"{peer}"'))
    return folder


@pytest.mark.parametrize("name", [name for name, each in VARIANTS.items() if each.codes])
def test_a_prepared_mistake_is_named(visits: dict[str, Future[list[Finding]]], name: str) -> None:
    """It is found, with a way out, and nothing else is that does not follow from it."""
    found = [each for each in visits[name].result(DONE_S) if each.mark != "fine"]
    codes = VARIANTS[name].codes

    assert codes[0] in [each.code for each in found], found
    assert [each for each in found if each.code not in codes] == []
    assert all(each.way_out for each in found)


def test_nothing_is_wrong_with_the_example(visits: dict[str, Future[list[Finding]]]) -> None:
    """Right behaviour is named too: how it reads, writes, commits and ends."""
    found = visits["none"].result(DONE_S)

    assert [each for each in found if each.mark != "fine"] == []
    assert [each.code for each in found] == [
        "ready",
        "input",
        "output",
        "group",
        "transactions",
        "isolation",
        "reset",
        "commits",
        "stop",
        "clients",
    ]


def test_nothing_is_wrong_with_progress_in_no_group(
    visits: dict[str, Future[list[Finding]]],
) -> None:
    """Its outputs were waited for, and nothing is said of commits."""
    found = visits["progress elsewhere"].result(DONE_S)

    assert [each for each in found if each.mark != "fine"] == []
    assert [each.code for each in found] == [
        "ready",
        "input",
        "output",
        "group",
        "isolation",
        "reset",
        "stop",
        "clients",
    ]
