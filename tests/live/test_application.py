"""An application without an adapter is judged against itself, as it is deployed."""

import shutil
from pathlib import Path

import pytest
from deployments import APPLICATIONS, ORDERS, judged, varied

from upheld.brokers import Broker
from upheld.commands import CREDENTIALS
from upheld.history import reading
from upheld.history.events import Answered
from upheld.judging.rejudge import judge
from upheld.programs.modelled import offer_all
from upheld.verdicts import Verdict

AT_ITS_COMMIT = "G22.at-each-request[ledger-exactly_once-before-EndTxn]"
SAFE = "G22.dies-with-a-transaction-open[relay-exactly_once]"
DIES = "G22.dies-after-a-commit[relay-exactly_once]"
OPEN = "G22.dies-with-a-transaction-open[ledger-exactly_once]"
COMMITTED = "G22.dies-after-a-commit[ledger-exactly_once]"
TOTALS = APPLICATIONS / "totals"
CHECKPOINTS = APPLICATIONS / "checkpoints"
REFUNDS = APPLICATIONS / "refunds"
SERVED = APPLICATIONS / "served"
NEVER_WRONG = "G16.never-wrong[pulse-exactly_once]"
COMMITTED_ONLY = "G53.committed-only[pulse-exactly_once]"
SERVES_ALL = ("restored()\n    Served.totals = dict(totals)",) * 2
SERVES_NOTHING_OF_BEFORE = (SERVES_ALL[0], "restored()\n    Served.totals = {}")
SERVES_AT_ONCE = ("            Served.totals =", "        Served.totals =")
BALANCES = APPLICATIONS / "balances"
# The offsets of one partition of each batch are committed when nothing is left to do.
COMMITS_ONE_LATER = {
    "    while not stopping": "    later = dict[tuple[str, int], int]()\n    while not stopping",
    "        if not batch:\n": (
        "        if not batch and later:\n"
        "            places = [TopicPartition(*place, offset) for place, offset in later.items()]\n"
        "            consumer.commit(offsets=places, asynchronous=False)\n"
        "            later.clear()\n"
        "        if not batch:\n"
    ),
    "        places = [TopicPartition(*place, offset) for place, offset in read.items()]\n": (
        "        place, offset = read.popitem()\n"
        "        later = {each: to for each, to in later.items() if each not in read}\n"
        "        later[place] = offset\n"
        "        places = [TopicPartition(*place, offset) for place, offset in read.items()]\n"
    ),
    "        producer.send_offsets": "        if places:\n            producer.send_offsets",
}
KEPT = """\
            write(producer, batch)
            keep(offsets)
"""
KEPT_TOO_EARLY = """\
            keep(offsets)
            write(producer, batch)
"""
REPLAYED = "G1.replayed-after-a-crash[ledger-at_least_once]"
SECURITY = """
SECURITY = {
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": os.environ["USERNAME"],
    "sasl.password": os.environ["PASSWORD"],
    "ssl.ca.location": os.environ["CA_FILE"],
}
"""
NAIVE = "G47.commits-what-came-out[relay-at_least_once]"


def test_a_safe_service_is_upheld(broker: Broker, tmp_path: Path) -> None:
    """Two runs without a fault are asked, and what they say stands in the history."""
    found = judged(broker, tmp_path / "out", ORDERS, SAFE)
    history = reading.read(tmp_path / "out" / found.history)
    answers = list(history.of(Answered))

    assert found.verdict is Verdict.UPHELD, found.reason
    assert found.kills == 1
    assert {each.is_ordered for each in answers} == {True}
    assert {path for each in answers for path in each.unstable} == {"$.at"}
    assert judge(tmp_path / "out" / found.history).verdict == "upheld"


def test_a_naive_service_loses_what_it_has_committed(broker: Broker, tmp_path: Path) -> None:
    """Its offsets are committed on a timer, ahead of its results."""
    found = judged(broker, tmp_path / "out", ORDERS / "naive", NAIVE, name="orders-naive")

    assert found.verdict is Verdict.VIOLATED, found.reason
    assert set(found.totals) == {"behind-commit"}
    assert judge(tmp_path / "out" / found.history).verdict == "violated"


@pytest.mark.parametrize(
    ("service", "row", "anomalies"),
    [("", SAFE, set()), ("naive", NAIVE, {"behind-commit"})],
    ids=["safe", "naive"],
)
def test_an_instance_of_two_processes_is_judged(
    broker: Broker, tmp_path: Path, service: str, row: str, anomalies: set[str]
) -> None:
    """Both share the partitions, and a kill strikes both."""
    design = tmp_path / "design"
    shutil.copytree(ORDERS / service, design)
    shutil.copy(ORDERS / "orders.jsonl", design)
    file = design / "design.toml"
    text = file.read_text().replace("../orders.jsonl", "orders.jsonl")
    text = text.replace("[process.app]\n", "[process.app]\ncount = 2\n")
    file.write_text(text.replace("-{instance}", "-{instance}-{process}"))
    name = "-".join(filter(None, ("orders", service)))

    found = judged(broker, tmp_path / "out", design, row, name=name)

    assert found.verdict is (Verdict.VIOLATED if anomalies else Verdict.UPHELD), found.reason
    assert set(found.totals) == anomalies


def test_a_service_behind_tls_and_a_password_is_judged(broker: Broker, tmp_path: Path) -> None:
    """The fault strikes a request that its client sent by TLS, and the proxy has read."""
    design = tmp_path / "design"
    shutil.copytree(ORDERS, design)
    app = design / "app.py"
    address = '"bootstrap.servers": os.environ["KAFKA"],'
    text = app.read_text().replace(address, f"{address} **SECURITY,")
    app.write_text(text.replace("def main", f"{SECURITY}\n\ndef main", 1))
    file = design / "design.toml"
    text = file.read_text().replace('shape = "map"', 'shape = "map"\nsecurity = "sasl_ssl"')
    told = "".join(f'{name.upper()} = "{{{name}}}"\n' for name in CREDENTIALS)
    file.write_text(f"{text}{told}")

    found = judged(broker, tmp_path / "out", design, SAFE)

    assert found.verdict is Verdict.UPHELD, found.reason
    assert found.kills == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("BATCH = 500", "raise SystemExit('no such vault')", "no such vault"),
        ('os.environ["GROUP"]', '"mine"', "it was not ready by group in 3 s"),
    ],
)
def test_a_service_that_cannot_be_judged_says_why(
    broker: Broker, tmp_path: Path, old: str, new: str, said: str
) -> None:
    """Its last words, or what it was waited for, are in the reason."""
    design = tmp_path / "design"
    shutil.copytree(ORDERS, design)
    app = design / "app.py"
    app.write_text(app.read_text().replace(old, new))
    file = design / "design.toml"
    file.write_text(f"{file.read_text()}\n[signals]\nstart_s = 3\n")

    found = judged(broker, tmp_path / "out", design, SAFE)

    assert found.verdict is Verdict.HARNESS_ERROR
    assert said in found.reason


@pytest.mark.parametrize(
    ("kept", "verdict", "anomalies"),
    [(KEPT, Verdict.UPHELD, set()), (KEPT_TOO_EARLY, Verdict.VIOLATED, {"lost"})],
    ids=["after its outputs", "before its outputs"],
)
def test_a_service_with_a_checkpoint_and_no_group_is_judged(
    broker: Broker, tmp_path: Path, kept: str, verdict: Verdict, anomalies: set[str]
) -> None:
    """Its outputs are waited for; a checkpoint that is ahead of them loses some."""
    design = varied(CHECKPOINTS, tmp_path / "design", {KEPT: kept})

    found = judged(broker, tmp_path / "out", design, REPLAYED, name="checkpoints")

    assert found.verdict is verdict, found.reason
    assert set(found.totals) == anomalies
    assert judge(tmp_path / "out" / found.history).verdict == verdict


@pytest.mark.parametrize(
    ("changes", "anomalies"),
    [({}, set()), (COMMITS_ONE_LATER, {"ahead-of-commit"})],
    ids=["both", "one of them"],
)
def test_a_service_of_two_inputs_is_judged(
    broker: Broker, tmp_path: Path, changes: dict[str, str], anomalies: set[str]
) -> None:
    """Its transactions hold the offsets of both, or outputs are ahead of some."""
    design = varied(REFUNDS, tmp_path / "design", changes)

    found = judged(broker, tmp_path / "out", design, DIES, name="refunds")

    assert found.verdict is (Verdict.VIOLATED if anomalies else Verdict.UPHELD), found.reason
    assert set(found.totals) == anomalies
    assert judge(tmp_path / "out" / found.history).verdict == found.verdict


# Alerts are sent by a producer of their own, ahead of the transaction.
ALERT = 'produce(os.environ["ALERTS"], f"large: {read[\'id\']}", message.key())\n'
ALERTING = 'ALERTING = Producer({"bootstrap.servers": os.environ["KAFKA"]})\n'
ALERTS_AT_ONCE = {
    "COMMITTED = {": f"{ALERTING}COMMITTED = {{",
    f"producer.{ALERT}": f"ALERTING.{ALERT}        ALERTING.flush()\n",
}
# What an anomaly may have beside it, by chance. A wrong balance may be an earlier state of its
# account, or none. It is seen by the claim after the kill, or by the last one.
BESIDE = {
    "lost": {"duplicated", "phantom", "reordered"},
    "phantom": {"behind-commit", "lost"},
    "ahead-of-commit": set[str](),
}


@pytest.mark.parametrize(
    ("row", "changes", "anomalies"),
    [
        (OPEN, {}, set()),
        (COMMITTED, {"balances = restored()": "balances = dict[bytes, int]()"}, {"lost"}),
        (COMMITTED, {"+ SIGNS[message.topic()] * cents": "+ cents"}, {"phantom"}),
        (OPEN, ALERTS_AT_ONCE, {"ahead-of-commit"}),
    ],
    ids=["right", "not restored", "wrong logic", "torn"],
)
def test_a_model_of_several_inputs_and_outputs_judges(
    broker: Broker, tmp_path: Path, row: str, changes: dict[str, str], anomalies: set[str]
) -> None:
    """Balances of orders and refunds are those of some order of both, through a kill."""
    design = varied(BALANCES, tmp_path / "design", changes)

    found = judged(broker, tmp_path / "out", design, row, name="balances")
    model = next((tmp_path / "out" / "models").iterdir())

    assert found.verdict is (Verdict.VIOLATED if anomalies else Verdict.UPHELD), found.reason
    assert set(found.totals) - set().union(*map(BESIDE.__getitem__, anomalies)) == anomalies
    assert found.kills == 1
    assert found.oracle == "model"
    assert {"relation", "prefix"} <= set(found.rests_on)
    offer_all(model)
    assert judge(tmp_path / "out" / found.history).verdict == found.verdict


@pytest.mark.parametrize(
    ("restored", "verdict", "anomalies"),
    [("restored()", Verdict.UPHELD, set()), ("{}", Verdict.VIOLATED, {"lost"})],
)
def test_a_total_for_each_batch_is_compared_by_its_last_values(
    broker: Broker, tmp_path: Path, restored: str, verdict: Verdict, anomalies: set[str]
) -> None:
    """Which totals it says is an accident; the last one of each account is none."""
    new = f"totals: dict[bytes, int] = {restored}"
    design = varied(TOTALS, tmp_path / "design", {"totals = restored()": new})

    found = judged(broker, tmp_path / "out", design, DIES, name="totals")

    assert found.verdict is verdict, found.reason
    assert set(found.totals) == anomalies
    assert found.rests_on == ["last value per key", "prefix"]
    assert judge(tmp_path / "out" / found.history).verdict == verdict


@pytest.mark.parametrize(
    ("row", "change", "anomalies"),
    [
        (NEVER_WRONG, SERVES_ALL, set()),
        (COMMITTED_ONLY, SERVES_ALL, set()),
        (NEVER_WRONG, SERVES_NOTHING_OF_BEFORE, {"behind-commit"}),
        (COMMITTED_ONLY, SERVES_AT_ONCE, {"uncommitted-visible"}),
    ],
    ids=["whole after a crash", "committed alone", "nothing after a crash", "uncommitted"],
)
def test_answers_by_http_are_compared_with_the_outputs(
    broker: Broker, tmp_path: Path, row: str, change: tuple[str, str], anomalies: set[str]
) -> None:
    """Its answer for an account is the last visible total, also after a crash."""
    design = varied(SERVED, tmp_path / "design", dict([change]))

    found = judged(broker, tmp_path / "out", design, row, name="served")

    assert found.verdict is (Verdict.VIOLATED if anomalies else Verdict.UPHELD), found.reason
    assert set(found.totals) == anomalies
    assert judge(tmp_path / "out" / found.history).verdict == found.verdict


@pytest.mark.parametrize(
    ("folder", "name", "verdict"),
    [
        ("alerts", "alerts", Verdict.UPHELD),
        ("alerts/naive", "alerts-naive", Verdict.VIOLATED),
    ],
)
def test_each_of_two_outputs_is_judged(
    broker: Broker, tmp_path: Path, folder: str, name: str, verdict: Verdict
) -> None:
    """Alerts outside of the transaction are there before their offsets.

    The service dies at its commit, when the alerts are out. A transaction is seen open before.
    """
    found = judged(broker, tmp_path / "out", ORDERS.parent / folder, AT_ITS_COMMIT, name=name)
    history = reading.read(tmp_path / "out" / found.history)

    assert found.verdict is verdict, found.reason
    assert set(found.totals) == ({"ahead-of-commit"} if verdict is Verdict.VIOLATED else set())
    assert {each.output for each in history.of(Answered)} == {"costs", "alerts"}
    assert judge(tmp_path / "out" / found.history).verdict == verdict
